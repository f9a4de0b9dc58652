/*
 * What there is of instances whose tasks were left behind; see collect.h. In this order: whatever
 * the dead jobs have under way and can be given up is given up; that their requests are refused is
 * on the disk; then each instance is looked at, beside the others, with its guest's lock. No lock
 * is held while that file is written: what waits for one is refused when its turn comes.
 */
#include "core/node/collect.h"

#include "core/node/cancel.h"
#include "core/node/ended_jobs.h"
#include "core/node/image_look.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/parts.h"
#include "core/node/volume/volumes.h"

#define SILENT_CHARS 512 /* as the record has it */
#define BUSY_CHARS 128

/* One question; lives until the last of its subjects has had its guest's lock. */
struct collecting {
    struct node_core *node;
    guint users;
    guint waiting; /* subjects whose guest's lock was not free yet … */
    guint looking; /* … and those that are looked at */
    bool over;     /* who has not got it by now is told as busy */
    struct env_pause pause;
    GPtrArray *subjects; /* struct subject: as long as somebody looks at one */
};

struct subject {
    struct collecting *call;
    struct collect_subject *asked;
    struct sight *sight; /* NULL: not looked at */
};

static gint64 now_ms(const struct node_core *node)
{
    return node->env->ops->boot_ms(node->env);
}

/* --- one instance --- */

static bool ask_drives(struct guest *guest, guint64 generation)
{
    struct hypervisor *hv = guest->node->hv;
    GPtrArray *drives = hv->ops->drives(hv, guest->record->instance, generation, false, NULL);
    if (!drives)
        return false;
    g_clear_pointer(&guest->drives, g_ptr_array_unref);
    guest->drives = drives;
    return true;
}

static bool ask_guest(struct guest *guest)
{
    return guest_query(guest) && (!guest->live || guest_look_io(guest) || !guest->live) &&
           (!guest->live || ask_drives(guest, guest->record->generation) || !guest->live);
}

/* A process that waits for another one's memory may have gone without a word, too. */
static bool ask_incoming(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    guint64 generation = incoming_generation(guest);
    enum guest_state state = GUEST_ABSENT;
    struct mirror_info mirror = {0};
    if (!hv->ops->query(hv, guest->record->instance, generation, &state, &mirror, NULL))
        return false;
    guest->incoming_live = guest->incoming_live && state != GUEST_ABSENT;
    return !guest->incoming_live || ask_drives(guest, generation);
}

/* In a task of its own, as its monitor may not come back. */
static bool look_at_process(struct node_core *node, void *thing)
{
    struct guest *guest = thing;
    if (guest->live)
        return ask_guest(guest);
    return !guest->incoming_live || ask_incoming(guest);
}

static void tell_process(const struct guest *guest, struct sight *sight)
{
    const struct guest_record *record = guest->record;
    bool waits = !guest->live && guest->incoming_live;
    sight->state = guest_state_known(guest);
    sight->generation = waits ? incoming_generation(guest) : record->generation;
    sight->io_stop = guest_io_stop(guest);
    if (waits)
        text_set(&sight->migration, incoming_migration(guest));
    else if (outgoing_state(guest) != MIGRATION_NONE)
        text_set(&sight->migration, record->migration);
    if (sight->state == GUEST_ABSENT) {
        text_set(&sight->crashed, record->crashed);
        return;
    }
    for (guint i = 0; guest->drives && i < guest->drives->len; i++)
        g_ptr_array_add(sight->drives, g_strdup(guest->drives->pdata[i]));
    volumes_copy(sight->volumes, record->volumes);
}

/* Several may be silent. */
static void tell_silent(struct sight *sight, const char *why)
{
    g_autofree char *all =
        g_strdup_printf("%s%s%s", sight->silent, *sight->silent ? "; " : "", why);
    g_free(sight->silent);
    sight->silent = text_head(all, SILENT_CHARS);
}

static void tell_error(struct sight *sight, const GError *error)
{
    if (error && !fettle_error_is(error, KILLED))
        tell_silent(sight, error->message);
}

static void take(GPtrArray *to, GPtrArray *from)
{
    g_ptr_array_extend_and_steal(to, from);
}

static bool has_own_set(const struct sight *sight)
{
    bool any = false;
    for (guint i = 0; i < sight->images->len && !any; i++)
        any = !*((const struct image_set *)sight->images->pdata[i])->replica;
    return any;
}

/* Without images there is nothing that could hang for them. */
static void look_at_images(struct node_core *node, const struct collect_subject *asked,
                           gint64 until_ms, struct sight *sight)
{
    bool shared = asked->disk_template == TEMPLATE_SHAREDFILE;
    guint count = asked->disks->len;
    g_autoptr(GError) error = NULL;
    if (asked->disk_template == TEMPLATE_DISKLESS)
        return;
    GPtrArray *sets = shared ? NULL : image_look_sets(node, asked->instance, until_ms, &error);
    if (sets)
        take(sight->images, sets);
    GPtrArray *disks =
        error || !(shared || has_own_set(sight))
            ? NULL
            : image_look_disks(node, asked->instance, shared, count, until_ms, &error);
    if (disks)
        take(sight->disks, disks);
    for (guint i = sight->disks->len; !error && i < count; i++)
        g_ptr_array_add(sight->disks, sight_disk_new());
    tell_error(sight, error);
}

static bool has_cards(const struct guest *guest)
{
    const struct instance *spec = guest->record->spec, *incoming = guest->record->incoming;
    return (spec && spec->nics->len > 0) || (incoming && incoming->nics->len > 0);
}

static void tell_taps(struct guest *guest, const struct look_round *round, struct sight *sight)
{
    g_autoptr(GError) error = NULL;
    const GPtrArray *taps = parts_taps(guest->node->parts, round, &error);
    gsize len = strlen(sight->instance);
    for (guint i = 0; taps && i < taps->len && sight->taps->len < LIMIT_SIGHT_NAMES; i++) {
        const char *text = taps->pdata[i];
        if (g_str_has_prefix(text, sight->instance) && text[len] == ' ')
            g_ptr_array_add(sight->taps, g_strdup(text + len + 1));
    }
    tell_error(sight, error);
}

/* With its lock, if it is known here, and no longer than UNDO_LOOK_MS, whatever hangs (SAF-91). */
static void look_at(struct subject *subject, struct guest *guest)
{
    struct node_core *node = subject->call->node;
    struct sight *sight = sight_new();
    gint64 until = now_ms(node) + UNDO_LOOK_MS;
    text_set(&sight->instance, subject->asked->instance);
    struct look_round *round = look_round_new(node);
    if (guest)
        look_round_add(round, &guest->sight, look_at_process, guest);
    if (guest && has_cards(guest))
        parts_ask_taps(node->parts, round);
    look_at_images(node, subject->asked, until, sight);
    look_round_wait_long(round, (guint)MAX(until - now_ms(node), 1));
    if (guest && !look_round_answered(round, &guest->sight))
        tell_silent(sight, "its monitor does not answer");
    if (guest && has_cards(guest))
        tell_taps(guest, round, sight);
    if (guest && guest->damage)
        tell_silent(sight, guest->damage);
    if (guest)
        tell_process(guest, sight);
    look_round_free(round);
    sight->taken_us = (guint64)MAX(node->env->ops->wall_us(node->env), 0);
    subject->sight = sight;
}

/* --- all of them --- */

static void call_leave(struct collecting *call)
{
    env_pause_end(&call->pause);
    if (--call->users > 0)
        return;
    node_release(call->node);
    g_ptr_array_unref(call->subjects);
    g_free(call);
}

static void subject_free(void *data)
{
    struct subject *subject = data;
    collect_subject_free(subject->asked);
    sight_free(subject->sight);
    g_free(subject);
}

struct turn {
    struct subject *subject; /* not to be touched once the call is over */
    struct collecting *call;
    struct guest *guest; /* NULL: nothing is known of it here, so nothing can be under way */
};

static void turn_run(void *data)
{
    g_autofree struct turn *turn = data;
    struct collecting *call = turn->call;
    struct guest *guest = turn->guest;
    bool locked = !guest || guest_lock(guest, NULL, NULL);
    if (locked && !call->over) {
        call->waiting--;
        call->looking++;
        look_at(turn->subject, guest);
        call->looking--;
    }
    if (locked && guest)
        guest_unlock(guest);
    call_leave(call);
}

static void begin(struct collecting *call, struct subject *subject)
{
    struct turn *turn = g_new(struct turn, 1);
    *turn = (struct turn){subject, call, guest_lookup(call->node, subject->asked->instance)};
    call->users++;
    call->waiting++;
    task_spawn(call->node->env->tasks, turn_run, turn);
}

/* In words for people: it is what they wait for. Without a time: each look says the same, and is
 * on record once. */
static char *busy_with(const struct guest *guest)
{
    const struct epoch_fence_op *op = guest->holder;
    if (!op)
        return g_strdup("the node daemon sees to it");
    if (epoch_fence_op_job(op) == 0)
        return g_strdup_printf("%s for another node is under way", epoch_fence_op_method(op));
    return g_strdup_printf("%s for job %u is under way", epoch_fence_op_method(op),
                           epoch_fence_op_job(op));
}

static struct sight *take_sight(const struct node_core *node, struct subject *subject)
{
    if (subject->sight)
        return g_steal_pointer(&subject->sight);
    struct sight *sight = sight_new();
    const struct guest *guest = guest_lookup((struct node_core *)node, subject->asked->instance);
    g_autofree char *busy = guest ? busy_with(guest) : g_strdup("the node daemon ends");
    text_set(&sight->instance, subject->asked->instance);
    g_free(sight->busy);
    sight->busy = text_head(busy, BUSY_CHARS);
    sight->busy_job = guest && guest->holder ? epoch_fence_op_job(guest->holder) : 0;
    sight->taken_us = (guint64)MAX(node->env->ops->wall_us(node->env), 0);
    return sight;
}

/* What is looked at when the time for locks is over is waited for: that ends by itself. */
static bool wait_for_all(struct collecting *call)
{
    const struct env *env = call->node->env;
    gint64 until = now_ms(call->node) + LIMIT_COLLECT_BUSY_MS;
    bool alive = true;
    while (alive && call->waiting > 0 && now_ms(call->node) < until)
        alive = env_pause(env, &call->pause, (guint)(until - now_ms(call->node)));
    call->over = true;
    while (alive && call->looking > 0)
        alive = env_pause(env, &call->pause, UNDO_LOOK_MS);
    return alive && !task_killed();
}

static struct collect_result *result_of(struct node_core *node, GPtrArray *subjects)
{
    struct collect_result *result = collect_result_new();
    text_set(&result->node, node->env->node_uuid);
    text_set(&result->boot_id, node->env->boot_id);
    for (guint i = 0; i < subjects->len; i++)
        g_ptr_array_add(result->sights, take_sight(node, subjects->pdata[i]));
    return result;
}

static json_t *look_at_all(struct node_core *node, const GPtrArray *asked, GError **error)
{
    struct collecting *call = g_new0(struct collecting, 1);
    call->subjects = g_ptr_array_new_with_free_func(subject_free);
    call->node = node;
    call->users = 1;
    node_hold(node);
    for (guint i = 0; i < asked->len; i++) {
        struct subject *subject = g_new0(struct subject, 1);
        subject->call = call;
        subject->asked = collect_subject_copy(asked->pdata[i]);
        g_ptr_array_add(call->subjects, subject);
        begin(call, subject);
    }
    json_t *answer = NULL;
    if (wait_for_all(call)) {
        record_autoptr(collect_result) result = result_of(node, call->subjects);
        answer = collect_result_to_json(result);
    } else {
        node_killed(error);
    }
    call_leave(call);
    return answer;
}

static void give_up(struct node_core *node, const GPtrArray *asked)
{
    for (guint i = 0; i < asked->len; i++) {
        const struct collect_subject *subject = asked->pdata[i];
        struct guest *guest = guest_lookup(node, subject->instance);
        if (guest)
            cancel_job(guest, (guint)subject->dead_job);
    }
}

json_t *collect_run(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct collect_args *collect = args;
    if (!ended_jobs_note(node, op, collect->subjects, error))
        return NULL;
    give_up(node, collect->subjects);
    return look_at_all(node, collect->subjects, error);
}
