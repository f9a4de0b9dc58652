/* See faults.h. */
#include "core/report/faults.h"

#include <string.h>

/* What was heard of one clock: how far it is ahead of the asker's lies between these. */
struct heard {
    struct node_report *report; /* NULL: the asker's own */
    gint64 low_us, high_us;
};

struct faults_round {
    const struct env *env;
    gint64 asked_ms; /* boot clock */
    GPtrArray *reports;
    GArray *clocks; /* struct heard */
};

struct faults_round *faults_round_new(const struct env *env)
{
    struct faults_round *round = g_new0(struct faults_round, 1);
    round->env = env;
    round->asked_ms = env->ops->boot_ms(env);
    round->reports = g_ptr_array_new();
    round->clocks = g_array_new(false, false, sizeof(struct heard));
    return round;
}

void faults_round_free(struct faults_round *round)
{
    if (!round)
        return;
    g_ptr_array_unref(round->reports);
    g_array_unref(round->clocks);
    g_free(round);
}

void faults_round_heard(struct faults_round *round, struct node_report *report)
{
    const struct env *env = round->env;
    gint64 way_ms = env->ops->boot_ms(env) - round->asked_ms;
    gint64 low_us = (gint64)report->clock_us - env->ops->wall_us(env);
    struct heard heard = {report, low_us, low_us + (way_ms + 1) * 1000};
    g_ptr_array_add(round->reports, report);
    if (report->clock_us != 0)
        g_array_append_val(round->clocks, heard);
}

static void add(struct node_report *report, const char *kind, char *text)
{
    if (report->faults->len < LIMIT_FAULTS) {
        struct node_fault *fault = node_fault_new();
        g_free(fault->kind);
        g_free(fault->text);
        fault->kind = g_strdup(kind);
        fault->text = text;
        fault->fresh = true;
        g_ptr_array_add(report->faults, fault);
    } else {
        g_free(text);
    }
}

/* --- clocks --- */

static gint by_size(gconstpointer a, gconstpointer b)
{
    gint64 left = *(const gint64 *)a, right = *(const gint64 *)b;
    return left < right ? -1 : left > right;
}

/* Of two in the middle the one that is nearer to the asker's own clock. */
static gint64 median(GArray *numbers)
{
    g_array_sort(numbers, by_size);
    gint64 high = g_array_index(numbers, gint64, numbers->len / 2);
    gint64 low = g_array_index(numbers, gint64, (numbers->len - 1) / 2);
    return ABS(low) < ABS(high) ? low : high;
}

static char *span_text(gint64 ms)
{
    gint64 s = ms / 1000;
    if (s < 3600)
        return g_strdup_printf("%" G_GINT64_FORMAT ".%d s", s, (int)(ms % 1000 / 100));
    if (s < 2 * 86400)
        return g_strdup_printf("%" G_GINT64_FORMAT " h %d min", s / 3600, (int)(s % 3600 / 60));
    return g_strdup_printf("%" G_GINT64_FORMAT " days", s / 86400);
}

static void judge_clock(const struct heard *heard, gint64 low_us, gint64 high_us, bool others)
{
    gint64 limit_us = LIMIT_CLOCK_OFF_MS * 1000;
    bool ahead = heard->low_us > high_us + limit_us;
    bool behind = heard->high_us < low_us - limit_us;
    if (!heard->report || (!ahead && !behind))
        return;
    gint64 off_us = (heard->low_us + heard->high_us) / 2 - (low_us + high_us) / 2;
    g_autofree char *span = span_text(ABS(off_us) / 1000);
    add(heard->report, FAULT_CLOCK,
        g_strdup_printf("has a clock that is %s %s %s", span, ahead ? "ahead of" : "behind",
                        others ? "the others'" : "the master's"));
}

static void judge_clocks(struct faults_round *round)
{
    g_autoptr(GArray) low = g_array_new(false, false, sizeof(gint64));
    g_autoptr(GArray) high = g_array_new(false, false, sizeof(gint64));
    struct heard own = {0};
    bool heard_own = false;
    for (guint i = 0; i < round->clocks->len && !heard_own; i++) {
        const struct heard *heard = &g_array_index(round->clocks, struct heard, i);
        heard_own = strcmp(heard->report->node, round->env->node_uuid) == 0;
    }
    if (!heard_own)
        g_array_append_val(round->clocks, own);
    for (guint i = 0; i < round->clocks->len; i++) {
        const struct heard *heard = &g_array_index(round->clocks, struct heard, i);
        g_array_append_val(low, heard->low_us);
        g_array_append_val(high, heard->high_us);
    }
    gint64 low_us = median(low), high_us = median(high);
    for (guint i = 0; i < round->clocks->len; i++)
        judge_clock(&g_array_index(round->clocks, struct heard, i), MIN(low_us, high_us),
                    MAX(low_us, high_us), round->clocks->len > 2);
}

/* --- copies --- */

/* At the same serial: what another one has had for LIMIT_COPY_BEHIND_S. */
static bool lags(const struct faults_round *round, const struct node_report *report)
{
    bool behind = false;
    for (guint i = 0; i < round->reports->len && !behind; i++) {
        const struct node_report *other = round->reports->pdata[i];
        bool same = other->copy_history == report->copy_history;
        behind = other->copy_settled > 0 && (same ? other->copy_settled > report->copy_serial
                                                  : other->copy_history > report->copy_history);
    }
    return behind && report->copy_serial > 0;
}

static void judge_copies(struct faults_round *round, const struct config *config)
{
    const char *master = config_cluster(config)->master_node;
    g_autoptr(GPtrArray) late = g_ptr_array_new();
    struct node_report *masters = NULL;
    guint copies = 0;
    for (guint i = 0; i < round->reports->len; i++) {
        struct node_report *report = round->reports->pdata[i];
        bool is_master = strcmp(report->node, master) == 0;
        masters = is_master ? report : masters;
        copies += !is_master && report->copy_serial > 0;
        if (!is_master && lags(round, report))
            g_ptr_array_add(late, report);
    }
    if (masters && copies > 1 && late->len == copies) {
        add(masters, FAULT_COPY,
            g_strdup("gives its changes to no other candidate: all their copies of the "
                     "configuration lag behind"));
        return;
    }
    for (guint i = 0; i < late->len; i++)
        add(late->pdata[i], FAULT_COPY,
            g_strdup("has a copy of the configuration that lags behind the others'"));
}

void faults_round_end(struct faults_round *round, const struct config *config)
{
    judge_clocks(round);
    if (config_cluster(config))
        judge_copies(round, config);
    faults_round_free(round);
}

/* --- what follows --- */

const struct node_fault *faults_find(const struct node_report *report, const char *kind)
{
    for (guint i = 0; report->faults && i < report->faults->len; i++) {
        const struct node_fault *fault = report->faults->pdata[i];
        if (strcmp(fault->kind, kind) == 0)
            return fault;
    }
    return NULL;
}

const struct node_fault *faults_proven(const struct node_report *report, const char *kind)
{
    const struct node_fault *fault = report ? faults_find(report, kind) : NULL;
    return fault && fault->fresh && !fault->silent ? fault : NULL;
}

const char *faults_forbids(const struct node_report *report, bool images)
{
    const struct node_fault *state = faults_find(report, FAULT_STATE);
    const struct node_fault *disks = images ? faults_find(report, FAULT_DISKS) : NULL;
    if (state && !state->silent)
        return state->text;
    return disks && !disks->silent ? disks->text : NULL;
}

guint faults_rank(const struct node_report *report)
{
    guint rank = 0;
    for (guint i = 0; report->faults && i < report->faults->len; i++) {
        const struct node_fault *fault = report->faults->pdata[i];
        bool grave = !strcmp(fault->kind, FAULT_STATE) || !strcmp(fault->kind, FAULT_DISKS);
        rank += grave ? LIMIT_FAULTS : 1;
    }
    return rank;
}

char *faults_one_text(const struct node_fault *fault)
{
    return fault->age_s == 0
               ? g_strdup(fault->text)
               : g_strdup_printf("%s (for %" G_GUINT64_FORMAT " s)", fault->text, fault->age_s);
}

char *faults_text(const struct node_report *report)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; report->faults && i < report->faults->len; i++)
        g_string_append_printf(text, "%s%s", i ? "; " : "",
                               ((const struct node_fault *)report->faults->pdata[i])->text);
    return g_string_free(text, text->len == 0);
}
