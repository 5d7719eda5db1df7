/** The node's two container daemons: one for the system's own containers, one for those of Kubernetes. */

import { containerd } from '../../supervise/containerd/client.ts'

/** Runs apid and trustd; its state lasts until the machine restarts. */
export const systemDaemon = containerd('/system/run/containerd/containerd.sock')

/** Runs etcd and the kubelet in namespace `system`, pods in namespace `k8s.io`. */
export const criDaemon = containerd('/run/containerd/containerd.sock')

/** Where the registries' `hosts.toml` files are. */
export const hostsFolder = '/etc/cri/conf.d/hosts'
