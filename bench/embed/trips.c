/*
 * Trips over loopback TCP, as cheap as a client and a server can make them. bench/run embedded builds and runs it.
 *
 *   trips prepare PORT TEXT                 prints the bytes of one execution of a prepared statement: sent, received
 *   trips echo SENT RECEIVED                blocking echo server; prints its port, serves one connection after another
 *   trips echo-epoll SENT RECEIVED          epoll echo server; prints its port
 *   trips run PORT TEXT CONNECTIONS SECONDS executes TEXT, prepared once, on every connection
 *   trips run-echo PORT SENT RECEIVED CONNECTIONS SECONDS
 *   trips count PORT TEXT EXECUTIONS        executes TEXT so many times on one connection, for counting allocations
 *
 * `run` and `run-echo` print trips and seconds. Their loop is the same: every connection has one request under way; one
 * connection blocks, several are driven by epoll. An execution is Bind, Execute and Sync in one write.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BYTES_MAX = 1 << 16, CONNECTIONS_MAX = 64, LOOK_AT_CLOCK = 256 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void refuse(const char *what) {
    fprintf(stderr, "trips: %s\n", what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void write_all(int socket, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(socket, bytes, length);
        if (written < 0) die("write");
        bytes += written;
        length -= written;
    }
}

static int read_all(int socket, char *bytes, size_t length) {
    while (length > 0) {
        ssize_t got = read(socket, bytes, length);
        if (got < 0) die("read");
        if (got == 0) return 0;
        bytes += got;
        length -= got;
    }
    return 1;
}

static int connect_to(int port) {
    int one = 1, client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof address)) die("connect");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return client;
}

/* Listens on a free port and prints it. */
static int listen_somewhere(void) {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (server < 0 || bind(server, (struct sockaddr *)&address, length) || listen(server, 64)) die("listen");
    if (getsockname(server, (struct sockaddr *)&address, &length)) die("getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return server;
}

static int accept_one(int server) {
    int one = 1, client = accept(server, NULL, NULL);
    if (client < 0) die("accept");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return client;
}

/* ---- echo servers ---- */

static void echo(size_t sent, size_t received) {
    static char request[BYTES_MAX], reply[BYTES_MAX];
    int server = listen_somewhere();
    memset(reply, 'Z', received);
    for (;;) {
        int client = accept_one(server);
        while (read_all(client, request, sent)) write_all(client, reply, received);
        close(client);
    }
}

static void watch(int epoll, int socket) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event)) die("epoll_ctl");
}

static void echo_epoll(size_t sent, size_t received) {
    static char request[BYTES_MAX], reply[BYTES_MAX];
    static size_t got[1024];
    struct epoll_event events[CONNECTIONS_MAX];
    int server = listen_somewhere(), epoll = epoll_create1(0);
    memset(reply, 'Z', received);
    watch(epoll, server);
    for (;;) {
        int ready = epoll_wait(epoll, events, CONNECTIONS_MAX, -1);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            int client = events[i].data.fd;
            if (client == server) {
                client = accept_one(server);
                if (client >= 1024) refuse("too many connections");
                got[client] = 0;
                watch(epoll, client);
                continue;
            }
            ssize_t count = read(client, request, sent - got[client]);
            if (count <= 0) {
                close(client);
                continue;
            }
            got[client] += count;
            if (got[client] == sent) {
                got[client] = 0;
                write_all(client, reply, received);
            }
        }
    }
}

/* ---- a client of PostgreSQL's protocol ---- */

struct bytes {
    char data[BYTES_MAX];
    size_t length;
};

static void put(struct bytes *out, const void *data, size_t length) {
    if (out->length + length > BYTES_MAX) refuse("too long");
    memcpy(out->data + out->length, data, length);
    out->length += length;
}

static void put_message(struct bytes *out, char tag, const void *body, size_t length) {
    uint32_t size = htonl(length + 4);
    if (tag) put(out, &tag, 1);
    put(out, &size, 4);
    put(out, body, length);
}

/* Reads up to ReadyForQuery; gives the number of bytes. */
static size_t until_ready(int socket) {
    static char body[BYTES_MAX];
    size_t total = 0;
    for (;;) {
        char header[5];
        uint32_t size;
        if (!read_all(socket, header, 5)) refuse("the server closed the connection");
        memcpy(&size, header + 1, 4);
        size = ntohl(size) - 4;
        if (size > BYTES_MAX || !read_all(socket, body, size)) refuse("a reply is too long");
        total += 5 + size;
        if (header[0] == 'E') {
            fwrite(body, 1, size, stderr);
            refuse(" is the server's answer");
        }
        if (header[0] == 'Z') return total;
    }
}

/* A session with the statement prepared under the name s. */
static int session(int port, const char *text) {
    struct bytes out = {.length = 0}, body = {.length = 0};
    int socket = connect_to(port);
    put(&body, "\0\3\0\0user\0bench\0database\0bench\0", 31);
    put_message(&out, 0, body.data, body.length);
    write_all(socket, out.data, out.length);
    until_ready(socket);
    out.length = body.length = 0;
    put(&body, "s", 2);
    put(&body, text, strlen(text) + 1);
    put(&body, "\0\0", 2);
    put_message(&out, 'P', body.data, body.length);
    put_message(&out, 'S', "", 0);
    write_all(socket, out.data, out.length);
    until_ready(socket);
    return socket;
}

/* One execution: the unnamed portal, no parameters, rows as text, no limit. */
static void execution(struct bytes *out) {
    out->length = 0;
    put_message(out, 'B', "\0s\0\0\0\0\0\0\0", 9);
    put_message(out, 'E', "\0\0\0\0\0", 5);
    put_message(out, 'S', "", 0);
}

/* ---- the loop of both clients ---- */

static char reply[BYTES_MAX];

static void check(size_t received) {
    /* The last six bytes are ReadyForQuery; the echo server sends nothing but its letter. */
    if (reply[received - 6] != 'Z') refuse("a wrong reply");
}

static long one_connection(int socket, const struct bytes *request, size_t received, double until) {
    for (long trips = 0;; trips++) {
        if (trips % LOOK_AT_CLOCK == 0 && now() >= until) return trips;
        write_all(socket, request->data, request->length);
        if (!read_all(socket, reply, received)) refuse("the server closed the connection");
        check(received);
    }
}

static long many_connections(int *sockets, int count, const struct bytes *request, size_t received, double until) {
    struct epoll_event events[CONNECTIONS_MAX];
    size_t got[1024] = {0};
    int epoll = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        if (sockets[i] >= 1024) refuse("too many connections");
        watch(epoll, sockets[i]);
        write_all(sockets[i], request->data, request->length);
    }
    for (long trips = 0, looks = 0;; looks++) {
        if (looks % (LOOK_AT_CLOCK / count) == 0 && now() >= until) return trips;
        int ready = epoll_wait(epoll, events, CONNECTIONS_MAX, -1);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            int socket = events[i].data.fd;
            ssize_t part = read(socket, reply + got[socket], received - got[socket]);
            if (part <= 0) refuse("the server closed the connection");
            got[socket] += part;
            if (got[socket] < received) continue;
            check(received);
            got[socket] = 0;
            trips++;
            write_all(socket, request->data, request->length);
        }
    }
}

static void measure(int *sockets, int count, const struct bytes *request, size_t received, double seconds) {
    double start = now();
    long trips = count == 1 ? one_connection(sockets[0], request, received, start + seconds)
                            : many_connections(sockets, count, request, received, start + seconds);
    printf("%ld %.9f\n", trips, now() - start);
}

static int connections(const char *text) {
    int count = atoi(text);
    if (count < 1 || count > CONNECTIONS_MAX) refuse("1 to 64 connections");
    return count;
}

static size_t length(const char *text) {
    long bytes = atol(text);
    if (bytes < 6 || bytes > BYTES_MAX) refuse("6 to 65536 bytes");
    return bytes;
}

int main(int argc, char **argv) {
    static struct bytes request;
    int sockets[CONNECTIONS_MAX];
    const char *what = argc > 1 ? argv[1] : "";
    execution(&request);
    if (!strcmp(what, "echo") && argc == 4) echo(length(argv[2]), length(argv[3]));
    else if (!strcmp(what, "echo-epoll") && argc == 4) echo_epoll(length(argv[2]), length(argv[3]));
    else if (!strcmp(what, "prepare") && argc == 4) {
        int socket = session(atoi(argv[2]), argv[3]);
        write_all(socket, request.data, request.length);
        printf("%zu %zu\n", request.length, until_ready(socket));
    } else if (!strcmp(what, "count") && argc == 5) {
        int socket = session(atoi(argv[2]), argv[3]);
        for (long left = atol(argv[4]); left > 0; left--) {
            write_all(socket, request.data, request.length);
            until_ready(socket);
        }
    } else if (!strcmp(what, "run") && argc == 6) {
        int count = connections(argv[4]);
        size_t received = 0;
        for (int i = 0; i < count; i++) {
            sockets[i] = session(atoi(argv[2]), argv[3]);
            write_all(sockets[i], request.data, request.length);
            received = until_ready(sockets[i]);
        }
        measure(sockets, count, &request, received, atof(argv[5]));
    } else if (!strcmp(what, "run-echo") && argc == 7) {
        int count = connections(argv[5]);
        request.length = length(argv[3]);
        for (int i = 0; i < count; i++) sockets[i] = connect_to(atoi(argv[2]));
        measure(sockets, count, &request, length(argv[4]), atof(argv[6]));
    } else refuse("see the head of trips.c");
    return 0;
}
