/* Which back end a new volume is put on. core/storage/volume_choose.h */
#include "core/storage/volume_choose.h"

#include "unit/core/world/storage_world.h"

static GPtrArray *changes, *spaces;

static void space_free(void *space)
{
    backend_space_free(space);
}

static void begin(void)
{
    changes = initial_storage();
    spaces = g_ptr_array_new_with_free_func(space_free);
}

static void space(const char *backend, guint64 free_gib, guint64 total_gib)
{
    struct backend_space *one = backend_space_new();
    g_free(one->backend);
    one->backend = g_strdup(backend);
    one->free_mib = free_gib * 1024;
    one->total_mib = total_gib * 1024;
    g_ptr_array_add(spaces, one);
}

/* The service of that node for dir1, or of node2 for dir2. */
static void service(const char *node, const char *backend, const char *state, bool disabled)
{
    g_autofree char *host = g_strdup_printf("node%c", node[0]);
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, backend);
    json_t *object = with(object_service(node), "uuid", json_string(key));
    json_object_set_new(object, "backend", json_string(backend));
    json_object_set_new(object, "state", json_string(state));
    json_object_set_new(object, "disabled", json_boolean(disabled));
    g_ptr_array_add(changes, put("storage_service", key, 1, object));
}

static void volume(const char *uuid, guint size, const char *data, const char *status)
{
    json_t *object = with(object_volume1(), "uuid", json_string(uuid));
    json_object_set_new(object, "size", json_integer(size));
    json_object_set_new(object, "data", json_string(data));
    json_object_set_new(object, "status", json_string(status));
    g_ptr_array_add(changes, put("volume", uuid, 1, object));
}

static void backend(const char *uuid, guint reserved_percent, guint overcommit)
{
    json_t *object = with(object_backend(uuid), "reserved_percent", json_integer(reserved_percent));
    g_ptr_array_add(changes,
                    put("backend", uuid, 1, with(object, "overcommit", json_integer(overcommit))));
}

static struct config *config_of_changes(void)
{
    struct config *config = config_new();
    for (guint i = 0; i < changes->len; i++) {
        g_autoptr(GError) error = NULL;
        config_apply(config, changes->pdata[i], &error);
        g_assert_no_error(error);
    }
    g_ptr_array_unref(changes);
    return config;
}

/* The volume's type is TYPE1, which is on record. */
static bool typed;
/* Of the one that a choice is made for. */
static struct worker *moving;

/* `dir1`, or `waits: …`, `never: …`; ends what begin() began. */
static char *chosen(guint64 size)
{
    struct config *config = config_of_changes();
    const char *uuid = NULL;
    g_autofree char *why = NULL;
    const struct volume volume = {.uuid = (char *)VOLUME1,
                                  .size = size,
                                  .volume_type = typed ? (char *)TYPE1 : (char *)"",
                                  .backend = moving ? (char *)DIR1 : (char *)""};
    record_autoptr(worker) blank = worker_new();
    const struct worker *row = config_get(config, "worker", ROW1, NULL);
    if (moving || !row)
        row = moving ? moving : blank;
    enum volume_choice choice = volume_choose(config, spaces, &volume, row, &uuid, &why);
    char *said =
        choice == VOLUME_CHOSEN
            ? g_strdup(((const struct backend *)config_get(config, "backend", uuid, NULL))->name)
            : g_strdup_printf("%s: %s", choice == VOLUME_WAITS ? "waits" : "never", why);
    config_free(config);
    g_ptr_array_unref(spaces);
    return said;
}

/* A volume of an image on dir1, and dir2 is another node's. */
static void of_image(guint64 free_gib)
{
    begin();
    g_ptr_array_add(changes, put("backend", DIR2, 1,
                                 with(object_backend(DIR2), "nodes", json_make("[s]", NODE3))));
    g_ptr_array_add(changes, put("image", ID_A, 1, object_image(ID_A, 4096)));
    volume(VOLUME1, 10, "", "error"); /* so that it is not promised twice */
    g_ptr_array_add(changes, put("worker", ROW1, 1,
                                 with(with(object_row1(), "backend", json_string("")), "source",
                                      json_make("{ss ss ss}", "resource_type", "Image",
                                                "resource_id", ID_A, "data", ID_A ".8"))));
    service(NODE1, DIR1, "up", false);
    service(NODE3, DIR2, "up", false);
    space(DIR1, free_gib, 200);
    space(DIR2, 150, 200);
}

/* What reads an image goes where a member sees both. */
static void test_image(void)
{
    of_image(100);
    assert_says(chosen(10), "dir1");
    of_image(5);
    assert_says(chosen(10), "waits: no back end for 10 GiB: dir1 has 5 GiB left; dir2 is served by "
                            "no node that serves dir1");
}

static void test_most_space(void)
{
    begin();
    service(NODE1, DIR1, "up", false);
    service(NODE2, DIR2, "up", false);
    space(DIR1, 100, 200);
    space(DIR2, 150, 200);
    assert_says(chosen(10), "dir2");
    /* What is promised counts, before it is written. */
    begin();
    service(NODE1, DIR1, "up", false);
    service(NODE2, DIR2, "up", false);
    space(DIR1, 190, 200);
    space(DIR2, 150, 200);
    volume(VOLUME1, 100, VOLUME1 ".7", "available");
    assert_says(chosen(10), "dir2");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 190, 200);
    volume(VOLUME1, 100, "", "creating");
    assert_says(chosen(101), "waits: no back end for 101 GiB: dir1 has 100 GiB left; dir2 has no "
                             "volume service that is up and enabled");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 190, 200);
    volume(VOLUME1, 100, "", "error");
    assert_says(chosen(101), "dir1");
}

/* A restore makes data of its own: of a new volume, and beside what one has as long as it is under
 * way. */
static void test_restores(void)
{
    static const char *const waits =
        "waits: no back end for 101 GiB: dir1 has 100 GiB left; dir2 has no volume service that is "
        "up and enabled";
    json_t *row =
        json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "resource_type", "Backup", "resource_id",
                  VOLUME2, "operation", "restore-backup", "status", "restoring", "backend", DIR1,
                  "partner_type", "Volume", "partner_id", VOLUME1);
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 200, 200);
    volume(VOLUME1, 100, "", "restoring-backup");
    assert_says(chosen(101), waits);
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 200, 200);
    volume(VOLUME1, 50, VOLUME1 ".7", "restoring-backup");
    g_ptr_array_add(changes, put("worker", "Backup/" VOLUME2, 1, row));
    assert_says(chosen(101), waits);
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 200, 200);
    volume(VOLUME1, 50, VOLUME1 ".7", "restoring-backup"); /* nobody restores it any more */
    assert_says(chosen(101), "dir1");
}

static void test_waits(void)
{
    static const char *const away =
        "dir1 has no volume service that is up and enabled; dir2 has no "
        "volume service that is up and enabled";
    g_autofree char *nobody = g_strdup_printf("waits: no back end for 1 GiB: %s", away);
    begin();
    space(DIR1, 100, 100);
    assert_says(chosen(1), nobody);
    begin();
    service(NODE1, DIR1, "down", false);
    service(NODE2, DIR1, "up", true);
    space(DIR1, 100, 100);
    assert_says(chosen(1), nobody);
    begin();
    service(NODE1, DIR1, "up", false);
    assert_says(chosen(1), "waits: no back end for 1 GiB: dir1 has not said yet how much space it "
                           "has; dir2 has no volume service that is up and enabled");
}

/* #CLN-25: only what no back end could hold, be it up or down. */
static void test_never(void)
{
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 10, 100);
    space(DIR2, 10, 50);
    assert_says(chosen(101), "never: no back end for 101 GiB: dir1 holds 100 GiB at most; dir2 "
                             "holds 50 GiB at most");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 10, 100);
    assert_says(chosen(101), "waits: no back end for 101 GiB: dir1 holds 100 GiB at most; dir2 has "
                             "no volume service that is up and enabled");
    begin();
    g_ptr_array_unref(changes);
    changes = initial_changes();
    assert_says(chosen(1), "never: no back end for 1 GiB: there is none");
}

static void test_reserved_and_overcommit(void)
{
    begin();
    backend(DIR1, 20, 100);
    service(NODE1, DIR1, "up", false);
    space(DIR1, 100, 100);
    assert_says(chosen(80), "dir1");
    begin();
    backend(DIR1, 20, 100);
    backend(DIR2, 20, 100);
    service(NODE1, DIR1, "up", false);
    space(DIR1, 100, 100);
    space(DIR2, 100, 100);
    assert_says(chosen(81), "never: no back end for 81 GiB: dir1 holds 80 GiB at most; dir2 holds "
                            "80 GiB at most");
    begin();
    backend(DIR1, 20, 200);
    service(NODE1, DIR1, "up", false);
    space(DIR1, 60, 100);
    assert_says(chosen(80), "dir1"); /* twice of the 40 that are free and not reserved */
    begin();
    backend(DIR1, 20, 200);
    service(NODE1, DIR1, "up", false);
    space(DIR1, 60, 100);
    volume(VOLUME1, 120, VOLUME1 ".7", "available");
    assert_says(chosen(41), "waits: no back end for 41 GiB: dir1 has 40 GiB left; dir2 has no "
                            "volume service that is up and enabled");
}

/* #CLN-25: a type that no back end has. */
static void test_types(void)
{
    static const char *const away = " has no volume service that is up and enabled";
    typed = true;
    begin();
    g_ptr_array_add(changes, put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir2")));
    service(NODE1, DIR1, "up", false);
    service(NODE2, DIR2, "up", false);
    space(DIR1, 100, 100);
    space(DIR2, 10, 10);
    assert_says(chosen(5), "dir2");
    begin();
    g_ptr_array_add(changes, put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir2")));
    service(NODE1, DIR1, "up", false);
    space(DIR1, 100, 100);
    g_autofree char *waits =
        g_strdup_printf("waits: no back end for 5 GiB: dir1 is not for type fast; dir2%s", away);
    assert_says(chosen(5), waits);
    begin();
    g_ptr_array_add(changes, put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir9")));
    service(NODE1, DIR1, "up", false);
    space(DIR1, 100, 100);
    assert_says(chosen(5), "never: no back end for 5 GiB: dir1 is not for type fast; dir2 is not "
                           "for type fast");
    typed = false;
}

static json_t *move_row(const char *uuid, const char *backend)
{
    g_autofree char *data = g_strconcat(uuid, ".7", NULL);
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s}}", "resource_type", "Volume",
                     "resource_id", uuid, "operation", "migrate-volume", "status", "migrating",
                     "backend", backend, "source", "resource_type", "Volume", "resource_id", uuid,
                     "data", data);
}

/* What moves goes to another one that one of its nodes serves, too, and counts at both meanwhile.
 */
static void test_moves(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = move_row(VOLUME2, "");
    moving = worker_parse(json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    begin();
    service(NODE1, DIR1, "up", false);
    service(NODE2, DIR2, "up", false);
    space(DIR1, 100, 100);
    space(DIR2, 50, 50);
    assert_says(chosen(5), "dir2");
    begin();
    service(NODE1, DIR1, "up", false);
    service(NODE2, DIR2, "up", false);
    space(DIR1, 100, 100);
    space(DIR2, 50, 50);
    g_ptr_array_add(changes, put("backend", DIR2, 1,
                                 with(object_backend(DIR2), "nodes", json_make("[s]", NODE3))));
    assert_says(chosen(5),
                "never: no back end for 5 GiB: dir1 is where it is; dir2 is served by no "
                "node that serves dir1");
    worker_free(g_steal_pointer(&moving));
    begin();
    service(NODE2, DIR2, "up", false);
    space(DIR2, 50, 50);
    volume(VOLUME1, 40, VOLUME1 ".7", "migrating");
    g_ptr_array_add(changes, put("worker", "Volume/" VOLUME1, 1, move_row(VOLUME1, DIR2)));
    assert_says(chosen(11), "waits: no back end for 11 GiB: dir1 has no volume service that is up "
                            "and enabled; dir2 has 10 GiB left");
}

/* A type that it is to get with its move counts, not the one that it has. */
static void test_retypes(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = with(move_row(VOLUME2, ""), "volume_type", json_string(TYPE1));
    moving = worker_parse(json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    begin();
    g_ptr_array_add(changes, put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir9")));
    service(NODE2, DIR2, "up", false);
    space(DIR2, 50, 50);
    assert_says(chosen(5),
                "never: no back end for 5 GiB: dir1 is where it is; dir2 is not for type "
                "fast");
    worker_free(g_steal_pointer(&moving));
}

/* `there`, or why not. */
static char *room(guint64 size, guint64 more)
{
    struct config *config = config_of_changes();
    g_autoptr(GError) error = NULL;
    const struct backend *dir1 = config_get(config, "backend", DIR1, NULL);
    const struct backend_space *space = spaces->len ? spaces->pdata[0] : NULL;
    bool there = volume_has_room(config, dir1, space, size, more, &error);
    g_assert_true(there || fettle_error_is(error, NO_RESOURCES));
    char *said = g_strdup(there ? "there" : error->message);
    config_free(config);
    g_ptr_array_unref(spaces);
    return said;
}

/* Of one that is named. #CLN-25: what is not known refuses nothing. */
static void test_room(void)
{
    begin();
    service(NODE1, DIR1, "up", false);
    assert_says(room(5000, 5000), "there");
    begin();
    space(DIR1, 5, 10);
    assert_says(room(10, 10), "there"); /* nobody is up, so 5 may be an old word */
    begin();
    space(DIR1, 5, 10);
    assert_says(room(11, 1),
                "back end dir1 holds 10 GiB at most, not 11 GiB: it has 10 GiB (reserved 0 %, "
                "overcommit 100 %); take a smaller size or another back end, or have it promise "
                "more: fettle backend modify dir1 --overcommit PERCENT");
    begin();
    backend(DIR1, 20, 200);
    service(NODE1, DIR1, "up", false);
    space(DIR1, 60, 100);
    volume(VOLUME1, 120, VOLUME1 ".7", "available");
    assert_says(room(41, 41),
                "back end dir1 has 40 GiB left, not 41 GiB: of its 100 GiB 60 GiB are free, and "
                "120 GiB are promised (reserved 20 %, overcommit 200 %); delete what is not "
                "needed there, take another back end, or have it promise more: fettle backend "
                "modify dir1 --overcommit PERCENT");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 10, 10);
    volume(VOLUME1, 6, VOLUME1 ".7", "available");
    assert_says(room(10, 4), "there"); /* what grows has its own part already */
}

/* What an extension is to make of a volume is promised as soon as it is accepted. */
static void test_room_of_extensions(void)
{
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 10, 10);
    volume(VOLUME1, 2, VOLUME1 ".7", "extending");
    g_ptr_array_add(changes, put("worker", ROW1, 1, with(object_row1(), "size", json_integer(9))));
    assert_says(room(1, 1), "there");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 0, 10);
    assert_says(room(1, 1),
                "back end dir1 has 0 MiB left, not 1 GiB: of its 10 GiB 0 MiB are free, and 0 MiB "
                "are promised (reserved 0 %, overcommit 100 %); delete what is not needed there, "
                "take another back end, or have it promise more: fettle backend modify dir1 "
                "--overcommit PERCENT");
    begin();
    service(NODE1, DIR1, "up", false);
    space(DIR1, 10, 10);
    volume(VOLUME1, 2, VOLUME1 ".7", "extending");
    g_ptr_array_add(changes, put("worker", ROW1, 1, with(object_row1(), "size", json_integer(9))));
    assert_says(room(2, 2),
                "back end dir1 has 1 GiB left, not 2 GiB: of its 10 GiB 10 GiB are free, and 9 GiB "
                "are promised (reserved 0 %, overcommit 100 %); delete what is not needed there, "
                "take another back end, or have it promise more: fettle backend modify dir1 "
                "--overcommit PERCENT");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-choose/image#SAF-120", test_image);
    g_test_add_func("/volume-choose/most-space", test_most_space);
    g_test_add_func("/volume-choose/restores", test_restores);
    g_test_add_func("/volume-choose/waits", test_waits);
    g_test_add_func("/volume-choose/never#CLN-25", test_never);
    g_test_add_func("/volume-choose/reserved-and-overcommit", test_reserved_and_overcommit);
    g_test_add_func("/volume-choose/types#CLN-25", test_types);
    g_test_add_func("/volume-choose/room#CLN-25", test_room);
    g_test_add_func("/volume-choose/room/extensions", test_room_of_extensions);
    g_test_add_func("/volume-choose/moves", test_moves);
    g_test_add_func("/volume-choose/retypes", test_retypes);
    return g_test_run();
}
