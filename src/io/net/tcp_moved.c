/* See tcp_moved.h. */
#include "io/net/tcp_moved.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"

#define ESTABLISHED 1
#define ANSWER_BYTES KIB(32)
#define ANSWER_S 1

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 about;
};

struct counts {
    guint64 port, received, sent;
};

static bool ask(int fd, guint8 family)
{
    const struct question question = {.head = {.nlmsg_len = sizeof question,
                                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                                      .about = {.sdiag_family = family,
                                                .sdiag_protocol = IPPROTO_TCP,
                                                .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                                                .idiag_states = 1 << ESTABLISHED}};
    return send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question;
}

/* Of an older kernel it may be shorter. */
static void take_info(const guint8 *bytes, gsize length, struct counts *counts)
{
    struct tcp_info info = {0};
    if (length < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return;
    memcpy(&info, bytes, MIN(length, sizeof info));
    counts->received += info.tcpi_bytes_received;
    counts->sent += info.tcpi_bytes_acked;
}

static void take(const struct nlmsghdr *message, struct counts *counts)
{
    const struct inet_diag_msg *about = NLMSG_DATA(message);
    gsize left = message->nlmsg_len - NLMSG_LENGTH(0);
    if (left < sizeof *about || ntohs(about->id.idiag_sport) != counts->port)
        return;
    left -= sizeof *about;
    const guint8 *at = (const guint8 *)(about + 1);
    for (struct rtattr part; left >= sizeof part; left -= MIN(left, RTA_ALIGN(part.rta_len))) {
        memcpy(&part, at, sizeof part);
        if (part.rta_len < sizeof part || part.rta_len > left)
            return;
        if (part.rta_type == INET_DIAG_INFO)
            take_info(at + sizeof part, part.rta_len - sizeof part, counts);
        at += RTA_ALIGN(part.rta_len);
    }
}

static bool hear(int fd, struct counts *counts)
{
    union {
        struct nlmsghdr head; /* as it is aligned */
        guint8 bytes[ANSWER_BYTES];
    } answer;
    for (;;) {
        ssize_t got = recv(fd, &answer, sizeof answer, 0);
        if (got <= 0)
            return false;
        guint left = (guint)got;
        for (struct nlmsghdr *message = &answer.head; NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left)) {
            if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
                return message->nlmsg_type == NLMSG_DONE;
            take(message, counts);
        }
    }
}

bool tcp_moved(guint64 port, guint64 *ret_received, guint64 *ret_sent)
{
    static const guint8 families[] = {AF_INET, AF_INET6};
    const struct timeval patience = {.tv_sec = ANSWER_S};
    struct counts counts = {.port = port};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
    for (guint i = 0; ok && i < G_N_ELEMENTS(families); i++)
        ok = ask(fd, families[i]) && hear(fd, &counts);
    if (fd >= 0)
        close(fd);
    *ret_received = counts.received;
    *ret_sent = counts.sent;
    return ok;
}
