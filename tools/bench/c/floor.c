/*
 * The floor: the least that the kernel lets anyone get away with, in plain C. Nothing is recorded, named, kept
 * or found again. Every figure of the benchmark is a multiple of one of these.
 *
 *   floor create CMD…         one terminal, one command in it; leaves when the command has
 *   floor creator CMD…        the same for every line on standard input, which becomes the last argument
 *   floor line CMD…           a terminal whose master is in hand. On standard input: `e` one byte to the command and
 *                             back, prints nanoseconds; `p N` writes N bytes, prints when it began
 *   floor hold SOCKET CMD…    an epoll daemon: output goes to every reader on the socket, input from any of them
 *   floor send SOCKET TEXT    what types at `hold`, by command
 *   floor answer SOCKET BYTES answers every request with that many bytes
 *   floor ask SOCKET          one request, by command
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A command on a terminal of its own; the other end is returned. */
static int start(char **argv, pid_t *pid) {
    int master, slave;
    struct winsize size = { 24, 80, 0, 0 };
    if (openpty(&master, &slave, NULL, NULL, &size) < 0) fail("openpty");
    fcntl(master, F_SETFD, FD_CLOEXEC);
    *pid = fork();
    if (*pid < 0) fail("fork");
    if (*pid == 0) {
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        dup2(slave, 0), dup2(slave, 1), dup2(slave, 2);
        if (slave > 2) close(slave);
        execv(argv[0], argv);
        _exit(127);
    }
    close(slave);
    return master;
}

static void socket_at(const char *path, struct sockaddr_un *at) {
    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(at->sun_path, sizeof at->sun_path, "%s", path);
}

static int listen_at(const char *path) {
    struct sockaddr_un at;
    socket_at(path, &at);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0) fail(path);
    return fd;
}

static int connect_to(const char *path) {
    struct sockaddr_un at;
    socket_at(path, &at);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) fail(path);
    return fd;
}

static int create(char **argv) {
    pid_t pid;
    start(argv, &pid);
    waitpid(pid, NULL, 0);
    return 0;
}

/* Orders come in any pieces; each line is one. Terminals are closed once their commands have ended. */
static int creator(int argc, char **argv) {
    enum { MOST = 1024 };
    char text[4096], *words[16];
    size_t have = 0;
    int count = 0, masters[MOST];
    pid_t pids[MOST];
    if (argc > 14) return 2;
    memcpy(words, argv, argc * sizeof *argv);
    words[argc + 1] = NULL;
    for (;;) {
        ssize_t n = read(0, text + have, sizeof text - have);
        if (n <= 0) return 0;
        have += n;
        for (char *end; (end = memchr(text, '\n', have));) {
            *end = 0;
            words[argc] = text;
            if (count < MOST) masters[count] = start(words, &pids[count]), count++;
            have -= end + 1 - text;
            memmove(text, end + 1, have);
        }
        for (int i = 0; i < count; i++) {
            if (waitpid(pids[i], NULL, WNOHANG) != pids[i]) continue;
            close(masters[i]);
            count--;
            masters[i] = masters[count], pids[i] = pids[count], i--;
        }
    }
}

static void paste(int master, int64_t size) {
    static char bytes[65536];
    int64_t sent = 0;
    printf("%lld\n", (long long)now());
    fflush(stdout);
    while (sent < size) {
        int64_t piece = size - sent < (int64_t)sizeof bytes ? size - sent : (int64_t)sizeof bytes;
        for (int64_t i = 0; i < piece; i++) bytes[i] = 'a' + (sent + i) % 26;
        ssize_t n = write(master, bytes, piece);
        if (n < 0) fail("write");
        sent += n;
    }
}

static int line(char **argv) {
    pid_t pid;
    int master = start(argv, &pid);
    char order[64], byte;
    while (fgets(order, sizeof order, stdin)) {
        if (order[0] == 'p') {
            paste(master, atoll(order + 1));
            continue;
        }
        int64_t began = now();
        if (write(master, "x", 1) != 1 || read(master, &byte, 1) != 1) fail("echo");
        printf("%lld\n", (long long)(now() - began));
        fflush(stdout);
    }
    kill(pid, SIGKILL);
    return 0;
}

/* Writes all of it, waiting where it must: a reader that moves gets everything. */
static int put(int fd, const char *bytes, ssize_t length) {
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = { fd, POLLOUT, 0 };
            poll(&wait, 1, -1);
            continue;
        }
        if (n <= 0) return -1;
        bytes += n, length -= n;
    }
    return 0;
}

static int hold(const char *path, char **argv) {
    enum { MOST = 256 };
    static char bytes[65536];
    int readers[MOST], count = 0;
    pid_t pid;
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_at(path);
    int master = start(argv, &pid);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = master;
    epoll_ctl(epoll, EPOLL_CTL_ADD, master, &event);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (reader < 0 || count == MOST) continue;
                readers[count++] = reader;
                event.data.fd = reader;
                epoll_ctl(epoll, EPOLL_CTL_ADD, reader, &event);
                continue;
            }
            ssize_t n = read(fd, bytes, sizeof bytes);
            if (fd == master) {
                if (n <= 0) return 0;
                for (int r = 0; r < count; r++) put(readers[r], bytes, n);
            } else if (n > 0) {
                put(master, bytes, n);
            } else if (n == 0 || errno != EAGAIN) {
                for (int r = 0; r < count; r++)
                    if (readers[r] == fd) readers[r--] = readers[--count];
                close(fd);
            }
        }
    }
}

static int answer(const char *path, size_t size) {
    int listener = listen_at(path);
    char *bytes = calloc(1, size), request[16];
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) return 1;
        if (read(fd, request, sizeof request) > 0) put(fd, bytes, size);
        close(fd);
    }
}

static int ask(const char *path) {
    char bytes[65536];
    int fd = connect_to(path);
    if (write(fd, "?", 1) != 1) return 1;
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
        if (write(1, bytes, n) < 0) return 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *what = argv[1];
    if (!strcmp(what, "create")) return create(argv + 2);
    if (!strcmp(what, "creator")) return creator(argc - 2, argv + 2);
    if (!strcmp(what, "line")) return line(argv + 2);
    if (!strcmp(what, "hold") && argc > 3) return hold(argv[2], argv + 3);
    if (!strcmp(what, "send") && argc > 3) return put(connect_to(argv[2]), argv[3], strlen(argv[3])) != 0;
    if (!strcmp(what, "answer") && argc > 3) return answer(argv[2], atoll(argv[3]));
    if (!strcmp(what, "ask")) return ask(argv[2]);
    return 2;
}
