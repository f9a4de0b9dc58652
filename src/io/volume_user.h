/*
 * The user that programs run as which follow what somebody else has written: qemu-img and qemu-nbd
 * at data of volumes, backups and images (SAF-110). A number without a name, as those of guests
 * are (backend/guest_users.h), of which it is none.
 */
#pragma once

#define VOLUME_USER 1879048191u
