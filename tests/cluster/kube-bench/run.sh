#!/bin/sh
# run.sh ROOT CONFIG KUBE-BENCH TARGETS: kube-bench in the process namespace of a node, on the node's files, with this host's shell.
# Called inside a mount namespace of its own; everything mounted here goes with it.
set -eu
root=$1 config=$2 program=$3 targets=$4
mount -t tmpfs tmpfs "$root"
cd "$root"
for folder in bin sbin lib lib64 usr; do
  if [ -L "/$folder" ]; then
    cp -a "/$folder" "$folder"
  elif [ -d "/$folder" ]; then
    mkdir "$folder"
    mount --rbind "/$folder" "$folder"
  fi
done
mkdir proc dev etc tmp run config
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind "$config" config
cp /etc/passwd /etc/group etc/
cp "$program" kube-bench
# Copies: what is mounted in another mount namespace cannot be bound here.
for path in etc/kubernetes etc/cni system/config system/secrets var/lib/kubelet/pki; do
  if [ -e "proc/1/root/$path" ]; then
    mkdir -p "$(dirname "$path")"
    cp -a "proc/1/root/$path" "$path"
  fi
done
for folder in var/lib/kubelet var/lib/etcd; do
  if [ -d "proc/1/root/$folder" ]; then
    mkdir -p "$folder"
    chown --reference="proc/1/root/$folder" "$folder"
    chmod --reference="proc/1/root/$folder" "$folder"
  fi
done
exec chroot . /kube-bench --config-dir /config --config /config/config.yaml --benchmark cis-1.10 --json run --targets "$targets"
