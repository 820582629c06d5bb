#define _GNU_SOURCE
#include "chaos/stillness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NAP_NS = 1000000, WITNESSES_MAX = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t still_us, still_until_us; /* all of it; the end of the last one */
static _Atomic uint64_t looked_us[WITNESSES_MAX];
static uint32_t witnesses;

static uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void note(uint64_t from_us, uint64_t to_us)
{
    pthread_mutex_lock(&lock);
    from_us = from_us > still_until_us ? from_us : still_until_us;
    if (from_us < to_us) {
        still_us += to_us - from_us;
        still_until_us = to_us;
    }
    pthread_mutex_unlock(&lock);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static void *witness(void *looked)
{
    for (uint64_t last_us = clock_us(), now_us;; last_us = now_us) {
        nap();
        now_us = clock_us();
        if (now_us - last_us >= STILLNESS_LEAST_US)
            note(last_us + STILLNESS_LEAST_US, now_us);
        atomic_store((_Atomic uint64_t *)looked, now_us);
    }
    return NULL;
}

void stillness_begin(void)
{
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof(ours), &ours) != 0) {
        CPU_ZERO(&ours);
        CPU_SET(0, &ours);
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE && witnesses < WITNESSES_MAX; cpu++) {
        pthread_t thread;
        cpu_set_t one;
        if (!CPU_ISSET(cpu, &ours))
            continue;
        if (pthread_create(&thread, NULL, witness, &looked_us[witnesses]) != 0) {
            printf("no thread for a witness\n0 passed, 1 failed\n");
            exit(1);
        }
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)pthread_setaffinity_np(thread, sizeof(one), &one); /* not everywhere: then it sleeps anywhere */
        pthread_detach(thread);
        witnesses++;
    }
}

/* When a machine goes on, whoever asks may be the first to be let run: the witnesses look first. */
uint64_t stillness_now_us(void)
{
    uint64_t now_us = clock_us();
    for (uint32_t i = 0; i < witnesses; i++)
        while (atomic_load(&looked_us[i]) < now_us)
            nap();
    pthread_mutex_lock(&lock);
    uint64_t still = still_us;
    pthread_mutex_unlock(&lock);
    return now_us - still;
}

uint64_t stillness_since(uint64_t began_us)
{
    uint64_t now_us = stillness_now_us();
    return now_us > began_us ? now_us - began_us : 0;
}
