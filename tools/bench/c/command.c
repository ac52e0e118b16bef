/*
 * What the benchmark runs inside sessions: one small static program, the same for every contestant.
 * It tells the benchmark what happened, and when by its own clock, in datagrams to a Unix socket.
 *
 *   command ready SOCKET ID        says that it runs, and exits
 *   command idle SOCKET ID [LINES] prints LINES lines, says that it runs, and waits to be ended
 *   command echo SOCKET ID         raw terminal; writes back what it reads
 *   command tell SOCKET ID         the same, and says when it read something
 *   command sink SOCKET ID BYTES   raw terminal; says when it has read BYTES, with a checksum, again and again
 *   command flood SOCKET ID BYTES  raw terminal; on SIGUSR1 prints BYTES, says when it began and ended, again and again
 *   command fds SOCKET ID          says which descriptors beyond its own three it was given, and exits
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

struct note {
    int32_t pid, id;
    int64_t when, a, b;
    char text[512];
};

static struct sockaddr_un to = { .sun_family = AF_UNIX };
static int32_t id;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void tell(int64_t when, int64_t a, int64_t b, const char *text) {
    struct note note = { .pid = getpid(), .id = id, .when = when, .a = a, .b = b };
    size_t length = strnlen(text, sizeof note.text - 1);
    memcpy(note.text, text, length);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sendto(fd, &note, offsetof(struct note, text) + length, 0, (struct sockaddr *)&to, sizeof to);
    close(fd);
}

static void raw(void) {
    struct termios modes;
    if (tcgetattr(0, &modes) == 0) {
        cfmakeraw(&modes);
        tcsetattr(0, TCSANOW, &modes);
    }
}

static void put(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = write(1, bytes, length);
        if (n <= 0) exit(1);
        bytes += n, length -= n;
    }
}

static void echo(int telling) {
    char bytes[65536];
    raw();
    tell(now(), 0, 0, "");
    for (;;) {
        ssize_t n = read(0, bytes, sizeof bytes);
        if (n <= 0) exit(0);
        if (telling) tell(now(), n, 0, "");
        put(bytes, n);
    }
}

static void sink(int64_t size) {
    unsigned char bytes[65536];
    raw();
    tell(now(), 0, 0, "");
    for (;;) {
        uint64_t sum = 14695981039346656037ULL;
        int64_t count = 0;
        while (count < size) {
            ssize_t n = read(0, bytes, sizeof bytes);
            if (n <= 0) exit(0);
            for (ssize_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 1099511628211ULL;
            count += n;
        }
        tell(now(), count, (int64_t)sum, "");
    }
}

static void flood(int64_t size) {
    static char bytes[65536];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 80 == 79 ? '\n' : ' ' + 1 + i % 90;
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, NULL);
    raw();
    tell(now(), 0, 0, "");
    for (;;) {
        int signal;
        sigwait(&go, &signal);
        int64_t began = now();
        for (int64_t left = size; left > 0; left -= sizeof bytes)
            put(bytes, left < (int64_t)sizeof bytes ? left : (int64_t)sizeof bytes);
        tell(now(), began, size, "");
    }
}

static void descriptors(void) {
    char text[512] = "";
    int64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char target[256], line[320];
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd <= 2 || fd == dirfd(dir)) continue;
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n < 0) continue;
        target[n] = 0;
        count++;
        snprintf(line, sizeof line, "%d=%s ", fd, target);
        if (strlen(text) + strlen(line) < sizeof text) strcat(text, line);
    }
    tell(now(), count, 0, text);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const char *what = argv[1];
    snprintf(to.sun_path, sizeof to.sun_path, "%s", argv[2]);
    id = atoi(argv[3]);
    int64_t number = argc > 4 ? atoll(argv[4]) : 0;
    if (!strcmp(what, "ready")) {
        tell(now(), 0, 0, "");
    } else if (!strcmp(what, "idle")) {
        for (int64_t i = 0; i < number; i++) printf("line %lld of what an agent said, about as long as lines are\n", (long long)i);
        fflush(stdout);
        tell(now(), 0, 0, "");
        for (;;) pause();
    } else if (!strcmp(what, "echo")) {
        echo(0);
    } else if (!strcmp(what, "tell")) {
        echo(1);
    } else if (!strcmp(what, "sink")) {
        sink(number);
    } else if (!strcmp(what, "flood")) {
        flood(number);
    } else if (!strcmp(what, "fds")) {
        descriptors();
    } else {
        return 2;
    }
    return 0;
}
