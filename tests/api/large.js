// An operators' door that has much to tell, for tests/api/cli_test.sh: 150 audit entries of 900 values each, and a tree of 8
// supervisors with 400 children of 40 values each. In one answer that is more than can be looked into.
//
//     node large.js SOCKET
//
// Prints "there" when it listens; ends with standard input.
const http = require('http');

const ENTRIES = 150;
const entry = n => ({ id: n, at: '2026-11-19T10:00:00.000000Z', verb: `large.${n}`, target: 'x', details: { died: Array.from({ length: 890 }, (_, i) => `0x${i}`), list: [{}] } });

function audits(query) {
    const first = Number(query.get('after') || 0), limit = Number(query.get('limit'));
    const list = Array.from({ length: Math.min(limit, ENTRIES - first) }, (_, i) => entry(first + i));
    return { audits: list, next: first + limit < ENTRIES ? String(first + limit) : null };
}

function actor(name, more) {
    const node = { name, pid: `0x${name}`, class: 'c', state: 'running', mailbox: { depth: 0, capacity: 10 }, handled: 1, restarts: 0, arena_bytes: 1, ...more };
    for (let i = 0; i < 12; i++) node[`more_${i}`] = i;
    return node;
}

function supervisor(name, children, all) {
    return actor(name, { supervisor: { children: all, children_left_out: all - children.length }, children });
}

function tree(query) {
    const shown = Math.min(Number(query.get('children')), 400);
    const below = s => Array.from({ length: shown }, (_, i) => actor(`${s}-${i}`, {}));
    return { tree: supervisor('root', Array.from({ length: 8 }, (_, s) => supervisor(`s${s}`, below(s), 400)), 8) };
}

const server = http.createServer((request, response) => {
    const url = new URL(request.url, 'http://localhost');
    const answer = { '/stats/audits': audits, '/stats/tree': tree }[url.pathname];
    response.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(answer ? JSON.stringify(answer(url.searchParams)) : '{}');
});
server.listen(process.argv[2], () => console.log('there'));
process.stdin.on('end', () => process.exit(0)).resume();
