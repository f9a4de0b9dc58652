/*
 * The order of lists, and how much of them is shown: --sort and --limit. Both are the command
 * line's own: luxid answers all rows that the filter lets through.
 */
#pragma once

#include "cli/cli.h"

#define ORDER_USAGE "[--sort FIELD,…] [--limit N]"

struct order {
    char **keys;   /* fields, NULL-terminated; NULL: as they come */
    bool *down;    /* of each key: the largest first */
    guint64 limit; /* 0: all */
    bool newest;   /* of what happens one after the other --limit shows the last, if nobody sorts */
};

/* Takes `--sort name,-memory` and `--limit 20` out of a command line, checked by themselves. */
bool order_take(struct order *order, int *argc, char **argv, const char *what, GError **error);
void order_clear(struct order *order);
#define order_auto __attribute__((cleanup(order_clear)))
static inline bool order_is_asked(const struct order *order)
{
    return order->keys != NULL || order->limit > 0;
}
/* The fields to be asked for: `fields`, and the keys behind them; borrowed strings. */
GPtrArray *order_fields(const struct order *order, const char *const *fields);
/* Those rows, whose cells from `keys_at` on are the keys, in order, and no more than were asked
 * for: numbers by their size, texts as people count (web2 before web10), what has no value last.
 * `*ret_left` are not among them. */
json_t *order_rows(const struct order *order, const json_t *rows, size_t keys_at, size_t *ret_left);
/* Says that on standard output, if a table for people was shown. */
void order_say_left(const struct cli *cli, size_t left);

/* web2 before web10: of two texts; and as g_ptr_array_sort() takes it. */
int order_compare_names(const char *left, const char *right);
int order_names(gconstpointer left, gconstpointer right);
