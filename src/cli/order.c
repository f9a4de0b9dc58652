/* See order.h. */
#include "cli/order.h"

#include <stdio.h>
#include <string.h>

#include "cli/columns.h"

/* --- the command line --- */

static void take_keys(struct order *order, const char *text, const char *what)
{
    order->keys = g_strsplit(text, ",", -1);
    order->down = g_new0(bool, g_strv_length(order->keys) + 1);
    for (guint i = 0; order->keys[i] != NULL; i++) {
        const char *word = order->keys[i];
        order->down[i] = *word == '-';
        const char *field = cli_field_named(what, word + (order->down[i] ? 1 : 0));
        char *copy = g_strdup(field);
        g_free(order->keys[i]);
        order->keys[i] = copy;
    }
}

bool order_take(struct order *order, int *argc, char **argv, const char *what, GError **error)
{
    g_autoptr(GError) bad = NULL;
    *order = (struct order){.newest = strcmp(what, "job") == 0 || strcmp(what, "decision") == 0 ||
                                      strcmp(what, "event") == 0};
    const char *sort = cli_take_option(argc, argv, "--sort", &bad);
    const char *limit = bad == NULL ? cli_take_option(argc, argv, "--limit", &bad) : NULL;
    if (sort != NULL)
        take_keys(order, sort, what);
    if (limit != NULL && !g_ascii_string_to_unsigned(limit, 10, 1, G_MAXINT32, &order->limit, NULL))
        fettle_set_error(&bad, WRONG_INPUT, "--limit: must be a number from 1 on, not \"%s\"",
                         limit);
    if (bad == NULL)
        return true;
    order_clear(order);
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

void order_clear(struct order *order)
{
    g_clear_pointer(&order->keys, g_strfreev);
    g_clear_pointer(&order->down, g_free);
}

GPtrArray *order_fields(const struct order *order, const char *const *fields)
{
    GPtrArray *asked = g_ptr_array_new();
    for (; *fields != NULL; fields++)
        g_ptr_array_add(asked, (char *)*fields);
    for (guint i = 0; order->keys != NULL && order->keys[i] != NULL; i++)
        g_ptr_array_add(asked, order->keys[i]);
    g_ptr_array_add(asked, NULL);
    return asked;
}

/* --- comparing --- */

int order_compare_names(const char *left, const char *right)
{
    while (*left != '\0' && *right != '\0') {
        if (g_ascii_isdigit(*left) && g_ascii_isdigit(*right)) {
            char *left_end, *right_end;
            guint64 one = g_ascii_strtoull(left, &left_end, 10);
            guint64 other = g_ascii_strtoull(right, &right_end, 10);
            if (one != other)
                return one < other ? -1 : 1;
            left = left_end;
            right = right_end;
        } else if (*left != *right) {
            return (guchar)*left < (guchar)*right ? -1 : 1;
        } else {
            left++;
            right++;
        }
    }
    return (*left != '\0') - (*right != '\0');
}

int order_names(gconstpointer left, gconstpointer right)
{
    return order_compare_names(*(const char *const *)left, *(const char *const *)right);
}

static int compare_values(const json_t *left, const json_t *right)
{
    if (json_is_number(left) && json_is_number(right)) {
        double one = json_number_value(left), other = json_number_value(right);
        return (one > other) - (one < other);
    }
    g_autofree char *one = NULL, *other = NULL;
    if (!json_is_string(left))
        one = json_dumps(left, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!json_is_string(right))
        other = json_dumps(right, JSON_ENCODE_ANY | JSON_COMPACT);
    return order_compare_names(one != NULL ? one : json_string_value(left),
                               other != NULL ? other : json_string_value(right));
}

struct sorting {
    const struct order *order;
    size_t keys_at;
};

static int compare_rows(gconstpointer left, gconstpointer right, gpointer data)
{
    const struct sorting *sorting = data;
    for (guint i = 0; sorting->order->keys[i] != NULL; i++) {
        const json_t *one = cli_cell_value(*(json_t *const *)left, sorting->keys_at + i);
        const json_t *other = cli_cell_value(*(json_t *const *)right, sorting->keys_at + i);
        bool none = one == NULL || json_is_null(one), nor = other == NULL || json_is_null(other);
        int order = none || nor ? none - nor : compare_values(one, other);
        if (order != 0)
            return sorting->order->down[i] && !none && !nor ? -order : order;
    }
    return 0;
}

json_t *order_rows(const struct order *order, const json_t *rows, size_t keys_at, size_t *ret_left)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    struct sorting sorting = {order, keys_at};
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(sorted, json_array_get(rows, i));
    if (order->keys != NULL)
        g_ptr_array_sort_with_data(sorted, compare_rows, &sorting);
    size_t shown = order->limit > 0 ? MIN(order->limit, sorted->len) : sorted->len;
    size_t first = order->newest && order->keys == NULL ? sorted->len - shown : 0;
    json_t *list = json_array();
    for (size_t i = first; i < first + shown; i++)
        json_array_append(list, sorted->pdata[i]);
    *ret_left = sorted->len - shown;
    return list;
}

void order_say_left(const struct cli *cli, size_t left)
{
    if (left > 0 && !cli->json && cli->separator == NULL)
        printf("%zu more %s not shown (--limit).\n", left, left == 1 ? "is" : "are");
}
