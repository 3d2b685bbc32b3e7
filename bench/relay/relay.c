/* The limit that a proxy on epoll can reach: it receives and sends, and does nothing else. One thread, no partial writes.
 *
 *     cc -O2 -o relay relay.c && ./relay LISTEN_PORT UPSTREAM_PORT      (127.0.0.1 on both sides)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int peer[4096];
static int has_ended[4096];

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: relay LISTEN_PORT UPSTREAM_PORT\n");
        return 2;
    }
    struct sockaddr_in here = loopback(atoi(arguments[1])), there = loopback(atoi(arguments[2]));
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, epoll = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&here, sizeof here) || listen(listener, 1024)) {
        perror("relay");
        return 1;
    }
    watch(epoll, listener);
    for (;;) {
        static char buffer[65536];
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int client = accept(listener, 0, 0), server = socket(AF_INET, SOCK_STREAM, 0);
                if (client < 0 || client >= 4096 || server >= 4096 || connect(server, (void *)&there, sizeof there)) {
                    close(client);
                    close(server);
                    continue;
                }
                no_delay(client);
                no_delay(server);
                peer[client] = server;
                peer[server] = client;
                has_ended[client] = has_ended[server] = 0;
                watch(epoll, client);
                watch(epoll, server);
                continue;
            }
            ssize_t length = recv(fd, buffer, sizeof buffer, 0);
            if (length > 0) {
                send(peer[fd], buffer, length, MSG_NOSIGNAL);
                continue;
            }
            /* Both are closed together: a number that is free is another connection's. */
            has_ended[fd] = 1;
            shutdown(peer[fd], SHUT_WR);
            epoll_ctl(epoll, EPOLL_CTL_DEL, fd, 0);
            if (has_ended[peer[fd]]) {
                close(peer[fd]);
                close(fd);
            }
        }
    }
}
