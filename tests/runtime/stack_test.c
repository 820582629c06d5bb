#include "runtime/stack.h"

#include "acutest.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define SIZE ((size_t)64 * 1024)

static sigjmp_buf touched;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(touched, 1);
}

/* Does a write to this address fault? */
static bool faults(uintptr_t address)
{
    struct sigaction action = {.sa_handler = on_fault};
    struct sigaction old;
    sigaction(SIGSEGV, &action, &old);
    volatile bool fault = true;
    if (sigsetjmp(touched, 1) == 0) {
        *(volatile unsigned char *)address = 1;
        fault = false;
    }
    sigaction(SIGSEGV, &old, NULL);
    return fault;
}

static size_t resident_pages(uintptr_t low, size_t size)
{
    unsigned char pages[64];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    TEST_ASSERT(size / page <= sizeof pages);
    TEST_ASSERT(mincore((void *)low, size, pages) == 0);
    size_t count = 0;
    for (size_t i = 0; i < size / page; i++)
        count += pages[i] & 1;
    return count;
}

static size_t mapping_count(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    TEST_ASSERT(maps != NULL);
    size_t count = 0;
    for (int c = getc(maps); c != EOF; c = getc(maps))
        count += c == '\n';
    fclose(maps);
    return count;
}

static void stack_pool_refuses_absurd_sizes(void)
{
    errno = 0;
    TEST_CHECK(stack_pool_create(0, 1) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(stack_pool_create(SIZE, 0) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(stack_pool_create(SIZE_MAX, 1) == NULL && errno == EINVAL);
    errno = 0;
    TEST_CHECK(stack_pool_create(SIZE, SIZE_MAX / 2) == NULL && errno == EINVAL);
    stack_pool_destroy(NULL);
}

static void stack_size_is_rounded_up_to_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct stack_pool *pool = stack_pool_create(page + 1, 1);
    TEST_CHECK(stack_pool_size(pool) == 2 * page);
    TEST_CHECK(stack_pool_guard_size(pool) >= STACK_GUARD_SIZE);
    TEST_CHECK(stack_pool_guard_size(pool) % page == 0);
    stack_pool_destroy(pool);
}

static void stack_comes_back_warm_and_last_first(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 10);
    uintptr_t a = stack_take(pool);
    uintptr_t b = stack_take(pool);
    TEST_ASSERT(a != 0 && b != 0 && a != b);
    *(volatile uintptr_t *)(a - sizeof a) = 0x5eed;
    stack_give(pool, b);
    stack_give(pool, a);
    TEST_CHECK(stack_pool_idle(pool, 0) == a);
    TEST_CHECK(stack_pool_idle(pool, 1) == b);
    TEST_CHECK(stack_take(pool) == a);
    TEST_CHECK(*(volatile uintptr_t *)(a - sizeof a) == 0x5eed);
    TEST_CHECK(stack_take(pool) == b);
    struct stack_counts counts = stack_pool_counts(pool);
    TEST_CHECK(counts.carved == 2 && counts.idle == 0);
    stack_give(pool, a);
    stack_give(pool, b);
    stack_pool_destroy(pool);
}

static void stack_is_refused_beyond_count_max(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 3);
    uintptr_t taken[3];
    for (size_t i = 0; i < 3; i++)
        TEST_ASSERT((taken[i] = stack_take(pool)) != 0);
    errno = 0;
    TEST_CHECK(stack_take(pool) == 0 && errno == EAGAIN);
    stack_give(pool, taken[1]);
    TEST_CHECK(stack_take(pool) == taken[1]);
    for (size_t i = 0; i < 3; i++)
        stack_give(pool, taken[i]);
    stack_pool_destroy(pool);
}

static void stack_guard_faults_on_every_page_and_the_stack_on_none(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 100);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t guard = stack_pool_guard_size(pool);
    uintptr_t taken[100];
    for (size_t i = 0; i < 100; i++) {
        TEST_ASSERT((taken[i] = stack_take(pool)) != 0);
        uintptr_t low = taken[i] - SIZE;
        TEST_CHECK(faults(low - 1));
        for (uintptr_t at = low - guard; at < low; at += page)
            TEST_CHECK(faults(at));
        TEST_CHECK(!faults(low));
        TEST_CHECK(!faults(taken[i] - 1));
    }
    for (size_t i = 0; i < 100; i++)
        stack_give(pool, taken[i]);
    stack_pool_destroy(pool);
}

static void stack_trim_gives_memory_back_and_keeps_guard_and_warmest(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 4);
    uintptr_t taken[4];
    for (size_t i = 0; i < 4; i++) {
        TEST_ASSERT((taken[i] = stack_take(pool)) != 0);
        memset((void *)(taken[i] - SIZE), 0xa5, SIZE);
    }
    for (size_t i = 0; i < 4; i++)
        stack_give(pool, taken[i]);
    stack_pool_trim(pool, 1);
    TEST_CHECK(stack_pool_counts(pool).cold == 3);
    for (size_t i = 0; i < 3; i++)
        TEST_CHECK(resident_pages(taken[i] - SIZE, SIZE) == 0);
    TEST_CHECK(resident_pages(taken[3] - SIZE, SIZE) == SIZE / (size_t)sysconf(_SC_PAGESIZE));

    stack_pool_trim(pool, 1);
    TEST_CHECK(stack_pool_counts(pool).cold == 3);
    TEST_CHECK(stack_take(pool) == taken[3]);
    TEST_CHECK(stack_take(pool) == taken[2]);
    TEST_CHECK(stack_pool_counts(pool).cold == 2);
    TEST_CHECK(faults(taken[2] - SIZE - 1));
    TEST_CHECK(!faults(taken[2] - SIZE));
    TEST_CHECK(stack_pool_counts(pool).carved == 4);
    stack_give(pool, taken[2]);
    stack_give(pool, taken[3]);
    stack_pool_trim(pool, 0);
    TEST_CHECK(stack_pool_counts(pool).cold == 4);
    stack_pool_destroy(pool);
}

static void stack_mark_finds_the_deepest_word_without_touching_pages(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 1);
    uintptr_t high = stack_take(pool);
    uintptr_t low = high - SIZE;
    TEST_CHECK(stack_mark(low, high) == high);
    TEST_CHECK(resident_pages(low, SIZE) == 0);
    *(volatile uintptr_t *)(high - 8) = 1;
    *(volatile uintptr_t *)(low + 20000) = 1;
    TEST_CHECK(stack_mark(low, high) == low + 20000);
    TEST_CHECK(stack_mark(low + 20008, high) == high - 8);
    TEST_CHECK(stack_mark(low, low + 20000) == low + 20000);
    TEST_CHECK(resident_pages(low, SIZE) == 2);
    stack_paint(low, high - 8);
    TEST_CHECK(stack_mark(low, high) == high - 8);
    *(volatile uintptr_t *)low = 1;
    TEST_CHECK(stack_mark(low, high) == low);
    stack_paint(low, high);
    TEST_CHECK(stack_mark(low, high) == high);
    stack_give(pool, high);
    stack_pool_destroy(pool);
}

/* A stack larger than what one look at the page table covers. */
static void stack_mark_finds_the_deepest_word_of_a_large_stack(void)
{
    size_t size = (size_t)8 << 20;
    struct stack_pool *pool = stack_pool_create(size, 1);
    uintptr_t high = stack_take(pool);
    uintptr_t low = high - size;
    for (size_t depth = 8; depth <= size; depth = depth * 3 / 8 * 8) {
        *(volatile uintptr_t *)(high - depth) = 1;
        TEST_CHECK(stack_mark(low, high) == high - depth);
    }
    stack_give(pool, high);
    stack_pool_destroy(pool);
}

/* A large stack has room for huge pages; one touched byte must still cost one page. */
static void stack_never_takes_a_huge_page(void)
{
    size_t size = (size_t)8 << 20;
    struct stack_pool *pool = stack_pool_create(size, 1);
    uintptr_t high = stack_take(pool);
    uintptr_t middle = high - size / 2;
    *(volatile unsigned char *)middle = 1;
    TEST_CHECK(resident_pages(middle - SIZE, SIZE) == 0);
    TEST_CHECK(resident_pages(middle, SIZE) == 1);
    stack_give(pool, high);
    stack_pool_destroy(pool);
}

/* Takes `count` stacks, checks what `refused` says of the next, gives all back. */
static void take_many(size_t count, size_t count_max, int refused)
{
    struct stack_pool *pool = stack_pool_create(SIZE, count_max);
    TEST_ASSERT(pool != NULL);
    uintptr_t *taken = calloc(count, sizeof *taken);
    for (size_t i = 0; i < count; i++) {
        taken[i] = stack_take(pool);
        TEST_ASSERT_(taken[i] != 0, "stack %zu: %s", i, strerror(errno));
    }
    errno = 0;
    TEST_CHECK(stack_take(pool) == 0);
    TEST_CHECK_(errno == refused, "errno %d", errno);
    for (size_t i = 0; i < count; i++)
        stack_give(pool, taken[i]);
    free(taken);
    stack_pool_destroy(pool);
}

static void stack_slabs_take_few_mappings(void)
{
    struct stack_pool *pool = stack_pool_create(SIZE, 1000000);
    size_t before = mapping_count();
    uintptr_t first = stack_take(pool);
    stack_give(pool, first);
    if (strcmp(stack_pool_counts(pool).guard_kind, "madvise") == 0) {
        enum { COUNT = 20000 };
        uintptr_t taken[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            TEST_ASSERT((taken[i] = stack_take(pool)) != 0);
        /* 9 slabs; TSan maps shadow beside each. */
        TEST_CHECK_(mapping_count() <= before + 27, "%zu mappings more", mapping_count() - before);
        for (size_t i = 0; i < COUNT; i++)
            stack_give(pool, taken[i]);
    }
    stack_pool_destroy(pool);
}

/* Takes the lightweight guards away from this process, as an older kernel would. */
static bool older_kernel(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 102, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The fallback: real guards, and a limit of its own below the kernel's limit of mappings, for all pools
 * together. Each test runs in a process of its own, so the filter ends with it. */
static void stack_guards_by_mprotect_are_limited_on_older_kernels(void)
{
    bool older = older_kernel();
    struct stack_pool *pool = stack_pool_create(SIZE, 10);
    uintptr_t high = stack_take(pool);
    TEST_CHECK(faults(high - SIZE - 1));
    TEST_CHECK(faults(high - SIZE - stack_pool_guard_size(pool)));
    TEST_CHECK(!faults(high - SIZE));
    TEST_CHECK(!older || strcmp(stack_pool_counts(pool).guard_kind, "mprotect") == 0);
    if (strcmp(stack_pool_counts(pool).guard_kind, "mprotect") == 0 && !RUNNING_ON_VALGRIND) {
        take_many(STACK_MPROTECT_MAX - 1, 40000, ENOSPC);
        take_many(STACK_MPROTECT_MAX - 1, 40000, ENOSPC); /* the first lot was counted back */
    }
    stack_give(pool, high);
    stack_pool_destroy(pool);
}

TEST_LIST
= {
    {"stack_pool_refuses_absurd_sizes", stack_pool_refuses_absurd_sizes},
    {"stack_size_is_rounded_up_to_pages", stack_size_is_rounded_up_to_pages},
    {"stack_comes_back_warm_and_last_first", stack_comes_back_warm_and_last_first},
    {"stack_is_refused_beyond_count_max", stack_is_refused_beyond_count_max},
    {"stack_guard_faults_on_every_page_and_the_stack_on_none",
     stack_guard_faults_on_every_page_and_the_stack_on_none},
    {"stack_trim_gives_memory_back_and_keeps_guard_and_warmest",
     stack_trim_gives_memory_back_and_keeps_guard_and_warmest},
    {"stack_mark_finds_the_deepest_word_without_touching_pages",
     stack_mark_finds_the_deepest_word_without_touching_pages},
    {"stack_mark_finds_the_deepest_word_of_a_large_stack",
     stack_mark_finds_the_deepest_word_of_a_large_stack},
    {"stack_never_takes_a_huge_page", stack_never_takes_a_huge_page},
    {"stack_slabs_take_few_mappings", stack_slabs_take_few_mappings},
    {"stack_guards_by_mprotect_are_limited_on_older_kernels",
     stack_guards_by_mprotect_are_limited_on_older_kernels},
    {NULL, NULL},
};
