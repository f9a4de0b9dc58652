/*
 * The users that programs run as which a volume service starts at what somebody else has written
 * (SAF-110): qemu-img and qemu-nbd at data in directories, and whatever is done at a pool of a
 * Ceph, which has the key of that. Numbers without a name, as those of guests are
 * (backend/guest_users.h), of which they are none. Both are of one group, that of the first.
 */
#pragma once

#define VOLUME_USER 1879048191u
#define POOL_USER 1879048190u
