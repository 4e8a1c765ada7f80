/* Loaded before the program under test: its clock is wrong by CLOCK_OFFSET seconds, and only its. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int outcome = (int)syscall(SYS_clock_gettime, clock, time);
    const char *offset = getenv("CLOCK_OFFSET");
    if (outcome == 0 && clock == CLOCK_REALTIME && offset != NULL)
        time->tv_sec += atoll(offset);
    return outcome;
}
