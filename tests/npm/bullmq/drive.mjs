// Submits jobs to BullMQ and works them off, as tests/bench/bullmq.c says on standard input, one line each:
//
//     submit CLIENTS MS        -> jobs ns p50_us p99_us
//     through CLIENTS JOBS     -> jobs ns
//
// A client is a promise that adds a job and waits for it. The worker is a thread of its own. Argument: the port of Redis.
import { createInterface } from 'node:readline'
import { Worker as Thread, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'
import { Queue, Worker } from 'bullmq'

const CONCURRENCY = 64
const BODY = 1024
const letters = Array.from({ length: BODY }, (_, i) => String.fromCharCode(97 + ((i * 7) % 26))).join('')
let number = 0

function body() {
  number++
  return number.toString(16).padStart(16, '0') + letters.slice(16)
}

function connection(port) {
  return { host: '127.0.0.1', port, maxRetriesPerRequest: null }
}

async function submit(queue, clients, ms) {
  const latencies = []
  const began = process.hrtime.bigint()
  const end = began + BigInt(ms) * 1000000n
  const client = async () => {
    for (let now = began; now < end; ) {
      await queue.add('job', { payload: body() })
      const after = process.hrtime.bigint()
      latencies.push(Number(after - now) / 1000)
      now = after
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  const ns = process.hrtime.bigint() - began
  latencies.sort((a, b) => a - b)
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
  return `${latencies.length} ${ns} ${at(0.5)} ${at(0.99)}`
}

async function through(queue, thread, clients, jobs) {
  let left = jobs
  const finished = new Promise((resolve) => thread.once('message', resolve))
  thread.postMessage(jobs)
  const began = process.hrtime.bigint()
  const client = async () => {
    while (left > 0) {
      left--
      await queue.add('job', { payload: body() }, { removeOnComplete: true })
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  await finished
  return `${jobs} ${process.hrtime.bigint() - began}`
}

function work({ port }) {
  let left = 0
  const worker = new Worker('through', async () => {}, { connection: connection(port), concurrency: CONCURRENCY })
  worker.on('completed', () => {
    if (--left === 0) parentPort.postMessage('finished')
  })
  parentPort.on('message', (jobs) => {
    left = jobs
  })
}

async function main() {
  const port = Number(process.argv[2])
  const submits = new Queue('submits', { connection: connection(port) })
  const throughs = new Queue('through', { connection: connection(port) })
  const thread = new Thread(fileURLToPath(import.meta.url), { workerData: { port } })
  await Promise.all([submits.waitUntilReady(), throughs.waitUntilReady()])
  console.log('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    const [verb, a, b] = line.split(' ')
    if (verb === 'submit') console.log(await submit(submits, Number(a), Number(b)))
    else console.log(await through(throughs, thread, Number(a), Number(b)))
  }
  process.exit(0)
}

if (isMainThread) await main()
else work(workerData)
