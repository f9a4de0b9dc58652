/*
 * Images that come and go: only what its sender has said to be all, under the claim of whoever
 * works on it, becomes one (SAF-60); of everything else nothing is left.
 */
#include <string.h>

#include "unit/core/world/volume_world.h"

static struct env *luxid;
static struct volumed *member;

static void set_up_with(GPtrArray *more)
{
    volumes_set_up(more);
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    g_free(job_locks(&world, 17, "x cluster/BGL", false));
    luxid = fake_process(world.world, NODE2, ROLE_LUXID);
    member = volumed_start(1);
    fake_advance(world.world, 20000);
}

static void set_up(void)
{
    set_up_with(NULL);
}

/* What was asked of node1's volume service, as text, or "error_name: message". */
static char *ask(const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = fake_call(luxid, NODE1, ROLE_VOLUMED, method, args, &error);
    if (!answer)
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

static const char *key_of(const char *image)
{
    g_autofree char *key = config_work_key(RESOURCE_IMAGE, image);
    return g_intern_string(key);
}

#define OTHER_SUM                                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"                             \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* An image that is saving, which the member has taken. */
static const char *begin_as(const char *name)
{
    g_autofree char *said = storage_ask(storage_cli, "add_image",
                                        json_make("{s:s,s:s}", "name", name, "disk_format", "raw"));
    g_assert_nonnull(strstr(said, "serial"));
    const char *image = volume_ask_for(json_make("{s:s,s:s,s:s}", "resource_type", "Image",
                                                 "operation", "save-image", "resource", name));
    fake_advance(world.world, 3000);
    return image;
}

static const char *begin(void)
{
    return begin_as("tick");
}

static guint64 claim_of(const char *image)
{
    const struct worker *row = storage_row(key_of(image));
    return row ? row->claim : 0;
}

static char *receive_bytes(const char *image, guint64 claim, guint64 bytes)
{
    return ask("receive_image", json_make("{s:s,s:I,s:I}", "key", key_of(image), "claim",
                                          (json_int_t)claim, "bytes", (json_int_t)bytes));
}

static char *receive(const char *image, guint64 claim)
{
    return receive_bytes(image, claim, 4096);
}

/* `sum`: NULL: what is really there. */
static char *finish(const char *image, guint64 claim, const char *sum)
{
    g_autofree char *name = volume_data_name(image, claim);
    g_autofree char *text =
        g_strdup_printf("%" G_GUINT64_FORMAT, fake_volumes_content(volumes, name));
    g_autofree char *real = g_compute_checksum_for_string(G_CHECKSUM_SHA512, text, -1);
    return ask("finish_image",
               json_make("{s:s,s:I,s:i,s:s}", "key", key_of(image), "claim", (json_int_t)claim,
                         "bytes", 4000, "sum", sum ? sum : real));
}

static void assert_said(const char *image, const char *status)
{
    g_autofree char *said = volume_said(image);
    if (!g_str_has_prefix(said, status))
        g_error("%s, and not %s", said, status);
}

static void assert_queued(const char *image, const char *why)
{
    volumes_work();
    const struct image *record = config_get(wconf_config(world.wconf), "image", image, NULL);
    g_assert_cmpint(record->status, ==, IMAGE_QUEUED);
    g_assert_cmpstr(record->data, ==, "");
    if (!strstr(record->status_why, why))
        g_error("\"%s\" says nothing of \"%s\"", record->status_why, why);
    volumes_assert_clean();
    g_assert_cmpint(fake_volumes_count(volumes), ==, 0);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 0);
}

static void test_life(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    assert_said(image, "saving");
    assert_says(receive(image, claim),
                "{\"address\":\"10.0.0.1\",\"path\":\"\",\"port\":10809,\"psk\":\"00\"}");
    fake_volumes_client(volumes, true);
    fake_advance(world.world, 10 * 60 * 1000); /* it takes its time */
    assert_said(image, "saving");
    assert_says(finish(image, claim, NULL), "{}");
    volumes_work();
    const struct image *record = config_get(wconf_config(world.wconf), "image", image, NULL);
    g_assert_cmpint(record->status, ==, IMAGE_ACTIVE);
    g_assert_cmpuint(record->size, ==, 4000);
    g_assert_cmpint((int)strlen(record->os_hash_value), ==, 128);
    g_assert_cmpint((int)strlen(record->checksum), ==, 32);
    volumes_assert_clean();
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 0);
    volumes_tear_down();
}

static void test_left(void)
{
    set_up();
    const char *image = begin();
    assert_queued(image, "nobody has come to send it within 60 s"); /* nor asked to */
    volumes_tear_down();

    set_up();
    image = begin();
    g_free(receive(image, claim_of(image)));
    assert_queued(image, "nobody has come to send it within 60 s");
    volumes_tear_down();

    set_up();
    image = begin();
    g_free(receive(image, claim_of(image)));
    fake_volumes_client(volumes, true);
    fake_advance(world.world, 1000);
    fake_volumes_client(volumes, false);
    assert_queued(image, "its sender has gone before the end");
    volumes_tear_down();

    set_up(); /* one who was not let in keeps the place for nobody */
    image = begin();
    g_free(receive(image, claim_of(image)));
    fake_volumes_set_client(volumes, TRANSFER_STANDS);
    fake_advance(world.world, 1000);
    fake_volumes_set_client(volumes, TRANSFER_WAITS);
    assert_queued(image, "its sender has gone before the end");
    volumes_tear_down();

    set_up();
    image = begin();
    g_free(receive(image, claim_of(image)));
    fake_volumes_set_client(volumes, TRANSFER_STUCK);
    assert_queued(image, "whoever came to send it got no further for too long");
    volumes_tear_down();
}

/* A sum that nothing can be held against is not one that was not said. */
static void test_sums(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    g_autofree char *large = g_ascii_strup(OTHER_SUM, -1);
    g_free(receive(image, claim));
    fake_volumes_client(volumes, true);
    const char *const wrong[] = {"aa", large, OTHER_SUM + 1, "no sum"};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++)
        assert_says(finish(image, claim, wrong[i]),
                    "wrong_input: field \"sum\" must be 128 hexadecimal digits in lower case, or "
                    "empty");
    assert_says(ask("finish_image",
                    json_make("{s:s,s:I,s:i,s:s,s:s}", "key", key_of(image), "claim",
                              (json_int_t)claim, "bytes", 4000, "sum", "", "checksum", "ABC")),
                "wrong_input: field \"checksum\" must be 32 hexadecimal digits in lower case, or "
                "empty");
    assert_says(finish(image, claim, ""), "{}");
    volumes_work();
    assert_said(image, "active");
    volumes_tear_down();
}

/* Its owner is cut off and lives: its process has the data open. Whoever cleans ends the row, and
 * the data goes when it can. */
static void test_open(void)
{
    set_up();
    const char *image = begin();
    g_autofree char *name = volume_data_name(image, claim_of(image));
    g_free(receive(image, claim_of(image)));
    fake_volumes_client(volumes, true);
    fake_volumes_lock(volumes, name, true);
    volumed_kill(member);
    volumed_start(1);
    volumes_work();
    const struct image *record = config_get(wconf_config(world.wconf), "image", image, NULL);
    g_assert_cmpint(record->status, ==, IMAGE_QUEUED);
    g_assert_null(storage_row(key_of(image)));
    g_assert_cmpint(fake_volumes_count(volumes), ==, 1);
    fake_volumes_lock(volumes, name, false);
    fake_advance(world.world, 61 * 60 * 1000);
    g_assert_cmpint(fake_volumes_count(volumes), ==, 0);
    volumes_assert_clean();
    volumes_tear_down();
}

static void test_wrong(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    g_free(receive(image, claim));
    fake_volumes_client(volumes, true);
    assert_says(finish(image, claim, OTHER_SUM), "{}");
    assert_queued(image, "what came is not what was sent");
    volumes_tear_down();
}

/* #SAF-27: not more than is free and not reserved; of what has no length yet, half of it. */
static void test_room(void)
{
    static const guint64 bytes[] = {MIB(525), MIB(524), 0};
    for (guint i = 0; i < G_N_ELEMENTS(bytes); i++) {
        json_t *half = with(object_backend(DIR1), "reserved_percent", json_integer(50));
        set_up_with(changes_of(put("backend", DIR1, 1, half), NULL));
        const char *image = begin();
        guint64 claim = claim_of(image);
        fake_volumes_set_space(volumes, DIR1, 1); /* whole hundredths of that: 500 MiB reserved */
        g_autofree char *said = receive_bytes(image, claim, bytes[i]);
        g_autofree char *name = volume_data_name(image, claim);
        g_assert_cmpuint(fake_volumes_bytes(volumes, name), ==, i ? MIB(524) / i : 0);
        if (i) {
            g_assert_nonnull(strstr(said, "psk"));
        } else {
            assert_says(g_steal_pointer(&said),
                        "insufficient_resources: back end dir1 has 524 MiB left for an image, not "
                        "525 MiB: of its 1 GiB 1 GiB are free, and 0 MiB are promised (reserved "
                        "50 %, overcommit 100 %); delete what is not needed there, or send it to "
                        "another back end");
            assert_queued(image, "has 524 MiB left for an image");
        }
        volumes_tear_down();
    }
}

/* #SAF-27: two doors at once share no room, however much may be overcommitted; who has failed
 * keeps none. */
static void test_doors(void)
{
    json_t *loose = with(object_backend(DIR1), "overcommit", json_integer(1000));
    set_up_with(changes_of(put("backend", DIR1, 1, loose), NULL));
    fake_volumes_set_space(volumes, DIR1, 1);
    const char *one = begin_as("one"), *other = begin_as("other");
    g_autofree char *first = receive_bytes(one, claim_of(one), MIB(600));
    g_assert_nonnull(strstr(first, "psk"));
    g_autofree char *second = receive_bytes(other, claim_of(other), MIB(425));
    g_assert_nonnull(strstr(second, "back end dir1 has 424 MiB left for an image, not 425 MiB"));
    assert_said(other, "queued");
    assert_queued(one, "nobody has come to send it");
    other = begin_as("third");
    g_autofree char *third = receive_bytes(other, claim_of(other), MIB(1024));
    g_assert_nonnull(strstr(third, "psk"));
    volumes_tear_down();
}

/* Two senders, late ones, repeated words. */
static void test_others(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    assert_says(finish(image, claim, NULL), "wrong_state: nothing has come of it");
    g_free(receive(image, claim));
    assert_says(receive(image, claim), "wrong_state: somebody sends it already");
    fake_volumes_client(volumes, true);
    g_autofree char *late = g_strdup_printf("superseded: %s: claim %" G_GUINT64_FORMAT " is over",
                                            key_of(image), claim - 1);
    assert_says(receive(image, claim - 1), late);
    assert_says(finish(image, claim - 1, NULL), late);
    fake_volumes_delay(volumes, 5000); /* while it is judged */
    assert_says(finish(image, claim, NULL), "{}");
    assert_says(finish(image, claim, NULL), "{}");
    assert_says(finish(image, claim, OTHER_SUM),
                "wrong_state: something else was said of it before");
    volumes_work();
    assert_said(image, "active");
    g_autofree char *gone =
        g_strdup_printf("resource_not_available: %s is not being received here", key_of(image));
    assert_says(receive(image, claim), gone);
    volumes_tear_down();
}

/* The door is being opened, which takes as long as the back end does, and is asked for again. */
static void test_impatient(void)
{
    struct fake_reply first;
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    fake_volumes_delay(volumes, 3000);
    fake_call_start(
        luxid, 0, NODE1, ROLE_VOLUMED, "receive_image",
        json_make("{s:s,s:I,s:i}", "key", key_of(image), "claim", (json_int_t)claim, "bytes", 4096),
        &first);
    for (guint i = 0; i < 4; i++) {
        fake_advance(world.world, 500);
        assert_says(receive(image, claim), "wrong_state: somebody sends it already");
    }
    fake_advance(world.world, 10000);
    g_assert_nonnull(first.result);
    fake_reply_clear(&first);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 1);
    fake_volumes_client(volumes, true);
    assert_says(finish(image, claim, NULL), "{}");
    volumes_work();
    assert_said(image, "active");
    volumes_tear_down();
}

/* A person's word ends it, and what comes afterwards is nobody's. */
static void test_reset(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    g_free(receive(image, claim));
    fake_volumes_client(volumes, true);
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Image", "resource", image,
                                 "status", "queued")));
    fake_advance(world.world, 2000);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 0);
    g_free(finish(image, claim, NULL));
    assert_queued(image, "");
    volumes_tear_down();
}

/* The owner is killed at each of its steps: what it made goes, unless it had ended. */
static bool dies_at(guint at)
{
    set_up();
    volumed_stop_at(member, at);
    const char *image = begin();
    guint64 claim = claim_of(image);
    if (claim)
        g_free(receive(image, claim));
    fake_volumes_client(volumes, true);
    if (claim && !volumed_stopped())
        g_free(finish(image, claim, NULL));
    volumes_work();
    bool stopped = volumed_stopped();
    if (stopped)
        volumed_kill(member);
    volumed_start(1);
    volumes_work();
    const struct image *record = config_get(wconf_config(world.wconf), "image", image, NULL);
    g_assert_true(record->status == IMAGE_QUEUED || record->status == IMAGE_ACTIVE);
    g_assert_true(stopped || record->status == IMAGE_ACTIVE);
    g_assert_cmpint(record->status == IMAGE_ACTIVE, ==, *record->data != '\0');
    volumes_assert_clean();
    volumes_tear_down();
    return stopped;
}

static void test_deaths(void)
{
    guint at = 1;
    while (dies_at(at))
        at++;
    g_assert_cmpint(at, >, 8);
}

/* --- sending --- */

static char *send(const char *image)
{
    return ask("send_image", json_make("{s:s,s:s}", "backend", DIR1, "image", image));
}

static void test_send(void)
{
    set_up();
    const char *image = begin();
    guint64 claim = claim_of(image);
    assert_says(send(image), "wrong_state: image tick is saving; only an active one is saved");
    g_free(receive(image, claim));
    fake_volumes_client(volumes, true);
    g_free(finish(image, claim, NULL));
    volumes_work();
    for (guint i = 0; i < LIMIT_BACKEND_CHILDREN - 1; i++)
        assert_says(send(image),
                    "{\"address\":\"10.0.0.1\",\"path\":\"\",\"port\":10809,\"psk\":\"00\"}");
    assert_says(send(image), "resource_not_available: dir1: as much is under way as may be; try "
                             "again");
    fake_advance(world.world, 30000);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, LIMIT_BACKEND_CHILDREN - 1);
    fake_volumes_client(volumes, true);
    fake_advance(world.world, 60000);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, LIMIT_BACKEND_CHILDREN - 1);
    fake_volumes_client(volumes, false);
    fake_advance(world.world, 1000);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 0);
    g_free(send(image)); /* nobody comes */
    fake_advance(world.world, 61000);
    g_assert_cmpint(fake_volumes_transfers(volumes), ==, 0);
    assert_said(image, "active");
    volumes_tear_down();
}

#define NO_FRONT_END                                                                               \
    "permission_denied: node \"node3\" has no front end of the API on record; see: fettle api "    \
    "init"

/* Any member may say that it is one; whoever asks for bytes has to be on record. */
static void test_front_ends(void)
{
    set_up();
    luxid = fake_process(world.world, NODE3, ROLE_APID);
    assert_says(receive(ID_A, 1), NO_FRONT_END);
    assert_says(finish(ID_A, 1, NULL), NO_FRONT_END);
    assert_says(send(ID_A), NO_FRONT_END);
    g_autofree char *said =
        storage_ask(storage_cli, "add_front_end", json_make("{s:s}", "node", NODE3));
    g_assert_nonnull(strstr(said, "serial"));
    fake_advance(world.world, 1000);
    assert_says(send(ID_A), "unknown_entity: image \"" ID_A "\" does not exist");
    volumes_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-receive/life#SAF-60", test_life);
    g_test_add_func("/volume-receive/front-ends#SAF-100", test_front_ends);
    g_test_add_func("/volume-receive/left#SAF-60", test_left);
    g_test_add_func("/volume-receive/room#SAF-27", test_room);
    g_test_add_func("/volume-receive/doors#SAF-27", test_doors);
    g_test_add_func("/volume-receive/wrong#SAF-60", test_wrong);
    g_test_add_func("/volume-receive/sums#SAF-60", test_sums);
    g_test_add_func("/volume-receive/open#SAF-52", test_open);
    g_test_add_func("/volume-receive/others#SAF-50,SAF-60", test_others);
    g_test_add_func("/volume-receive/impatient#SAF-60", test_impatient);
    g_test_add_func("/volume-receive/reset#SAF-50", test_reset);
    g_test_add_func("/volume-receive/deaths#SAF-52,SAF-60", test_deaths);
    g_test_add_func("/volume-receive/send", test_send);
    return g_test_run();
}
