#!/bin/sh
# A machine of its own, in a mount and process namespace: its users, /srv and /home are seen by nobody else and gone
# with the last process. Of the project, its users find what an installation would have: environment and package.
#   DEPLOY  files of the hub     COURSE  files for /srv/course     STEPS  commands, run as root, that set the machine up
#   KEEP    paths, one per line, that stay what they are           COVER  folders, one per line, emptied but for those
#   POSTGRES  folder with initdb and pg_ctl                        HUB    the command that is run at last
set -eu

mount -t tmpfs -o mode=700 tmpfs /mnt
cp -R "$DEPLOY" /mnt/deploy
cp -R "$COURSE" /mnt/course
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc

number=0
for path in $KEEP; do
    number=$((number + 1))
    mkdir "/mnt/$number"
    mount --bind "$path" "/mnt/$number"
done
for path in $COVER; do
    mkdir -p "$path"
    mount -t tmpfs -o mode=755 tmpfs "$path"
done
chmod 1777 /tmp
number=0
for path in $KEEP; do
    number=$((number + 1))
    mkdir -p "$path"
    mount --move "/mnt/$number" "$path"
done

mkdir -p /srv/course /run/lock
cp -R /mnt/course/. /srv/course
rm -rf /etc/jupyterhub /etc/jupyter
cp -R /mnt/deploy /etc/jupyterhub

install -d -o postgres -g postgres /run/postgresql /run/database
cd /run/database
as_postgres() { runuser -u postgres -- "$@" >/dev/null; }
as_postgres "$POSTGRES/initdb" -D /run/database -A peer -E UTF8 --no-sync
as_postgres "$POSTGRES/pg_ctl" -w -D /run/database -l /run/database/log \
    -o "-c listen_addresses= -c unix_socket_directories=/run/postgresql -c fsync=off" start

cd /
eval "$STEPS"
echo "The machine is ready."
$HUB
