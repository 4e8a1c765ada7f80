/* Loaded before the program under test: its clock is wrong by the seconds in the file CLOCK_FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int outcome = (int)syscall(SYS_clock_gettime, clock, time);
    const char *path = getenv("CLOCK_FILE");
    if (outcome != 0 || clock != CLOCK_REALTIME || path == NULL)
        return outcome;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return outcome;
    char text[32] = {0};
    if (read(file, text, sizeof text - 1) > 0)
        time->tv_sec += atoll(text);
    close(file);
    return outcome;
}
