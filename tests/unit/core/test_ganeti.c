/* A config.data of Ganeti as a plan: what is taken, what is said to have no counterpart, what is in
 * the way. The files are those that the fuzz target begins with; their folder is the argument. */
#include <string.h>

#include "config_world.h"
#include "core/config/ganeti.h"

static const char *folder;

static struct config *three_nodes(void)
{
    g_autoptr(GPtrArray) start = initial_changes();
    struct config *config = config_new();
    for (guint i = 0; i < start->len; i++) {
        const struct change *change = start->pdata[i];
        if (strcmp(change->kind, "instance") != 0 && strcmp(change->kind, "replica") != 0)
            g_assert_true(config_apply(config, change, NULL));
    }
    return config;
}

static json_t *read_sample(const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    size_t len = 0;
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    json_t *json = json_parse_limited(text, len, MIB(1), NULL);
    g_assert_nonnull(json);
    return json;
}

static struct import *plan_of(const char *name)
{
    struct config *config = three_nodes();
    json_autoptr json = read_sample(name);
    struct import *import = import_new();
    g_autoptr(GError) error = NULL;
    g_assert_true(import_ganeti(import, config, json, &error));
    config_free(config);
    return import;
}

static void assert_lines(const GPtrArray *lines, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)lines->pdata[i]);
    g_assert_cmpstr(text->str, ==, expected);
}

static const json_t *object_of(const struct import *import, const char *kind, const char *key)
{
    for (guint i = 0; i < import->changes->len; i++) {
        const struct change *change = import->changes->pdata[i];
        if (!strcmp(change->kind, kind) && !strcmp(change->key, key))
            return change->object;
    }
    g_assert_not_reached();
}

#define MAIL "7c000000-0000-4000-8000-000000000001"
#define WEB "7c000000-0000-4000-8000-000000000002"

static void test_3_0(void)
{
    g_autoptr(import_t) import = plan_of("3.0.json");
    assert_lines(import->problems, "");
    assert_lines(import->lines,
                 "add nodegroup east\n"
                 "change cluster c1: max_running_jobs: 20 -> 30, mac_prefix: aa:00:00 -> aa:00:17, "
                 "default_link: br0 -> br-lan\n"
                 "change node node2: drained: false -> true\n"
                 "change node node3: group: " GROUP " -> 7a000000-0000-4000-8000-000000000002, "
                 "master_capable: true -> false\n"
                 "add instance mail.example.org\n"
                 "add instance web.example.org\n"
                 "add instance probe\n"
                 "add tag site:east of cluster c1\n"
                 "add tag owner:ops of instance mail.example.org\n"
                 "add tag rack:4 of node node2\n"
                 "add tag power:b of nodegroup east\n");
    assert_lines(
        import->notes,
        "cluster: the name stays c1 (the file is of old.example.org)\n"
        "cluster: hvparams and diskparams have no counterpart here; guests run under QEMU with "
        "what their instance says\n"
        "cluster: enabled_hypervisors has no counterpart here: [\"kvm\"]\n"
        "cluster: ipolicy has no counterpart here: "
        "{\"disk-templates\":[\"drbd\",\"plain\"],\"spindle-ratio\":32,\"vcpu-ratio\":4}\n"
        "node group default: networks has no counterpart here: "
        "{\"7e000000-0000-4000-8000-000000000001\":{\"link\":\"100\",\"mode\":\"routed\","
        "\"vlan\":\"\"}}\n"
        "node group east: alloc_policy last_resort has no counterpart here\n"
        "node node3: secondary_ip 198.51.100.3 has no counterpart here; copies of disks take the "
        "node's one address\n"
        "node node3: is offline there; here that is a person's word that it is dead (fettle node "
        "modify --offline)\n"
        "network public (203.0.113.0/24): is not taken over; its cards get the bridge that their "
        "node group has for it. New cards can be in one that is made with: fettle network add\n"
        "instance mail.example.org: disk template drbd becomes mirror; its bytes have to be "
        "brought over\n"
        "instance mail.example.org: is up there and comes stopped; stop it there for good before "
        "it is started here\n"
        "instance mail.example.org: minmem 512 has no counterpart here; it has maxmem, 1024 MiB\n"
        "instance mail.example.org: its second copy on node2 is not taken over; when it has images "
        "give it one: fettle instance replace-disks mail.example.org\n"
        "instance web.example.org: disk template plain becomes file; its bytes have to be brought "
        "over\n"
        "instance web.example.org: disks[1]: mode ro has no counterpart here; guests may write to "
        "their disks\n"
        "instance web.example.org: nics[0]: its network is not taken over; it keeps mode "
        "routed and link 100\n"
        "instance web.example.org: hvparams has no counterpart here: "
        "{\"kernel_path\":\"/boot/vmlinuz\"}\n"
        "instance probe: hypervisor xen-pvm: here it runs under QEMU, and needs an image that "
        "boots there\n"
        "job filter 78000000-0000-4000-8000-000000000001: has no counterpart here\n"
        "instance mail.example.org: comes stopped and without images; `fettle instance "
        "recreate-disks mail.example.org` makes blank ones\n"
        "instance web.example.org: comes stopped and without images; `fettle instance "
        "recreate-disks web.example.org` makes blank ones\n");
    const json_t *mail = object_of(import, "instance", MAIL);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "memory")), ==, 1024);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "vcpus")), ==, 2);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "ctime")), ==, 1700000100);
    g_assert_cmpstr(json_string_value(json_object_get(mail, "admin_state")), ==, "down");
    g_assert_cmpstr(json_string_value(json_object_get(mail, "primary_node")), ==, NODE1);
    json_autoptr nics = json_incref(json_object_get(object_of(import, "instance", WEB), "nics"));
    g_autofree char *text = json_to_text(nics);
    g_assert_cmpstr(
        text, ==,
        "[{\"ip\":\"203.0.113.7\",\"link\":\"100\",\"mac\":\"aa:00:00:00:00:02\","
        "\"mode\":\"routed\",\"network\":\"\",\"uuid\":\"7f000000-0000-4000-8000-000000000002\"},"
        "{\"ip\":\"\",\"link\":\"br-dmz\",\"mac\":\"aa:00:00:00:00:03\","
        "\"mode\":\"bridged\",\"network\":\"\",\"uuid\":\"7f000000-0000-4000-8000-000000000003\"}"
        "]");
}

static void test_2_16(void)
{
    g_autoptr(import_t) import = plan_of("2.16.json");
    assert_lines(import->problems, "");
    const json_t *build = object_of(import, "instance", "7c000000-0000-4000-8000-000000000004");
    g_assert_cmpstr(json_string_value(json_object_get(build, "disk_template")), ==, "sharedfile");
    g_assert_cmpint(json_integer_value(json_object_get(build, "memory")), ==, 256);
    g_assert_cmpint(json_integer_value(json_object_get(build, "vcpus")), ==, 4);
    const json_t *nic = json_array_get(json_object_get(build, "nics"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(nic, "mode")), ==, "openvswitch");
    g_assert_cmpstr(json_string_value(json_object_get(nic, "link")), ==, "ovs0");
    bool vlan = false;
    for (guint i = 0; i < import->notes->len; i++)
        vlan = vlan || !strcmp(import->notes->pdata[i],
                               "instance build: nics[0]: vlan .7 has no counterpart here");
    g_assert_true(vlan);
}

static void test_problems(void)
{
    g_autoptr(import_t) import = plan_of("problems.json");
    assert_lines(
        import->problems,
        "node node2: group: the file has no node group \"nowhere\"\n"
        "node stranger: is no node of this cluster; let the host join first (fettle node invite "
        "stranger)\n"
        "instance mail.example.org: disks[0].dev_type: \"rbd\" has no counterpart here; there are "
        "mirror, file and sharedfile\n"
        "instance web.example.org: disks[1].dev_type: is file, and another disk is drbd8; here all "
        "disks of an instance are kept alike\n"
        "instance probe: primary_node: \"7b000000-0000-4000-8000-000000000003\" is no node of this "
        "cluster\n"
        "instance probe: disks[0]: the file has no disk \"gone\"\n");
}

static void assert_refused(json_t *json, const char *expected)
{
    struct config *config = three_nodes();
    g_autoptr(import_t) import = import_new();
    g_autoptr(GError) error = NULL;
    g_assert_false(import_ganeti(import, config, json, &error));
    g_autofree char *said = g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    g_assert_cmpstr(said, ==, expected);
    json_decref(json);
    config_free(config);
}

static void test_heads(void)
{
    assert_refused(json_object(), "wrong_input: version: is missing; this is no config.data of "
                                  "Ganeti");
    assert_refused(json_make("{s:i,s:{}}", "version", 3000000, "cluster"),
                   "wrong_input: nodes: is missing, or is no object; this is no config.data of "
                   "Ganeti");
    assert_refused(with(read_sample("3.0.json"), "version", json_integer(2120000)),
                   "wrong_input: version: is 2120000 (Ganeti 2.12); files of 2.16, 3.0 and 3.1 can "
                   "be read: upgrade that cluster first");
}

/* Whoever gives the command twice gets the same cluster. */
static void test_twice(void)
{
    struct config *config = three_nodes();
    json_autoptr json = read_sample("3.0.json");
    g_autoptr(import_t) first = import_new();
    g_autoptr(import_t) second = import_new();
    g_assert_true(import_ganeti(first, config, json, NULL));
    for (guint i = 0; i < first->changes->len; i++)
        g_assert_true(config_apply(config, first->changes->pdata[i], NULL));
    g_assert_true(import_ganeti(second, config, json, NULL));
    assert_lines(second->problems, "");
    assert_lines(second->lines, "");
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = argc > 1 ? argv[1] : ".";
    g_test_add_func("/ganeti/3.0", test_3_0);
    g_test_add_func("/ganeti/2.16", test_2_16);
    g_test_add_func("/ganeti/problems", test_problems);
    g_test_add_func("/ganeti/heads", test_heads);
    g_test_add_func("/ganeti/twice", test_twice);
    return g_test_run();
}
