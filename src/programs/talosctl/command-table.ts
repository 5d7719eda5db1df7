/** The top-level commands. */
import type { Command } from 'commander'
import type { Cluster } from './cluster.ts'
import type { Io } from './io.ts'

/** Builds one top-level command; `cluster` connects on first use with the flags the command was given. */
export type CommandFactory = (io: Io, cluster: Cluster) => Command

/** A top-level command as the list of commands shows it; its module is loaded when it runs. */
export interface Entry {
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly hidden?: true
  /** The command talks to no cluster and takes none of the global flags. */
  readonly local?: true
  load(): Promise<CommandFactory>
}

/** Every top-level command by name; a command that is not here does not exist. */
export const commands: Record<string, Entry> = {
  'apply-config': {
    summary: 'Give nodes a machine configuration',
    aliases: ['apply'],
    load: async () => (await import('./commands/machineconfig/apply-config.ts')).applyConfig,
  },
  bootstrap: {
    summary: 'Start etcd on the first control plane',
    load: async () => (await import('./commands/etcd/bootstrap.ts')).bootstrap,
  },
  cgroups: { summary: 'Show control groups', aliases: ['cg'], load: async () => (await import('./commands/process/cgroups.ts')).cgroups },
  cluster: {
    summary: 'Create, start, stop, show and destroy clusters on this machine',
    local: true,
    load: async () => (await import('./commands/cluster/cluster.ts')).cluster,
  },
  completion: {
    summary: 'Write the completion script of a shell',
    local: true,
    load: async () => (await import('./commands/client/completion.ts')).completion,
  },
  config: { summary: 'Show and change the client configuration', load: async () => (await import('./commands/config/config.ts')).config },
  conformance: {
    summary: 'Run conformance tests',
    load: async () => (await import('./commands/kubernetes/conformance.ts')).conformance,
  },
  'config-history': {
    summary: 'List, show, compare and restore the configurations that nodes were given',
    load: async () => (await import('./commands/machineconfig/config-history.ts')).configHistory,
  },
  containers: {
    summary: 'List containers',
    aliases: ['c'],
    load: async () => (await import('./commands/container/containers.ts')).containers,
  },
  copy: { summary: 'Copy files from a node', aliases: ['cp'], load: async () => (await import('./commands/file/copy.ts')).copy },
  crashdump: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).crashdump },
  dashboard: {
    summary: 'Watch nodes on the whole terminal',
    load: async () => (await import('./commands/diagnostics/dashboard.ts')).dashboard,
  },
  debug: { summary: 'Run a container that sees the whole node', load: async () => (await import('./commands/container/debug.ts')).debug },
  disks: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).disks },
  dmesg: { summary: 'Show the kernel log', load: async () => (await import('./commands/diagnostics/dmesg.ts')).dmesg },
  docs: {
    summary: 'Write reference pages',
    hidden: true,
    local: true,
    load: async () => (await import('./commands/client/docs.ts')).docs,
  },
  edit: { summary: 'Edit the machine configuration of nodes', load: async () => (await import('./commands/machineconfig/edit.ts')).edit },
  etcd: { summary: 'See to etcd', load: async () => (await import('./commands/etcd/etcd.ts')).etcd },
  events: { summary: 'Show what happens', load: async () => (await import('./commands/diagnostics/events.ts')).events },
  explain: {
    summary: 'Say why something is not there or not well',
    load: async () => (await import('./commands/resource/explain.ts')).explain,
  },
  extension: {
    summary: 'Build and check system extensions',
    local: true,
    load: async () => (await import('./commands/extension/extension.ts')).extension,
  },
  factory: {
    summary: 'Serve boot media that are made to order',
    local: true,
    load: async () => (await import('./commands/factory/factory.ts')).factory,
  },
  gen: {
    summary: 'Make secrets, configurations, keys and certificates',
    local: true,
    load: async () => (await import('./commands/gen/gen.ts')).gen,
  },
  get: { summary: 'Show resources', aliases: ['g'], load: async () => (await import('./commands/resource/get.ts')).get },
  health: { summary: 'Wait until the cluster is healthy', load: async () => (await import('./commands/diagnostics/health.ts')).health },
  image: { summary: 'See to container images', aliases: ['images'], load: async () => (await import('./commands/image/image.ts')).image },
  inspect: { summary: 'Look into the machinery of a node', load: async () => (await import('./commands/resource/inspect.ts')).inspect },
  inject: {
    summary: 'Change Kubernetes manifests',
    local: true,
    load: async () => (await import('./commands/kubernetes/inject.ts')).inject,
  },
  install: { summary: 'Install the system on a disk', load: async () => (await import('./commands/lifecycle/install.ts')).install },
  help: { summary: 'Show the help of a command', local: true, load: async () => (await import('./commands/client/help.ts')).help },
  interfaces: { summary: 'Gone', hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).interfaces },
  kms: {
    summary: 'Serve the keys of encrypted volumes',
    local: true,
    load: async () => (await import('./commands/kms/kms.ts')).kms,
  },
  kubeconfig: { summary: 'Get the admin kubeconfig', load: async () => (await import('./commands/kubernetes/kubeconfig.ts')).kubeconfig },
  list: { summary: 'List files', aliases: ['ls'], load: async () => (await import('./commands/file/list.ts')).list },
  logs: { summary: 'Show the log of a service or container', load: async () => (await import('./commands/service/logs.ts')).logs },
  machineconfig: {
    summary: 'Make and change machine configurations',
    aliases: ['mc'],
    local: true,
    load: async () => (await import('./commands/machineconfig/machineconfig.ts')).machineconfig,
  },
  measurements: {
    summary: 'Show what a TPM measured, and what changed',
    load: async () => (await import('./commands/diagnostics/measurements.ts')).measurements,
  },
  memory: { summary: 'Show memory', aliases: ['m', 'free'], load: async () => (await import('./commands/process/memory.ts')).memory },
  meta: { summary: 'Write and delete keys of the META partition', load: async () => (await import('./commands/disk/meta.ts')).meta },
  metrics: {
    summary: 'Show what nodes count, in Prometheus’ text format',
    load: async () => (await import('./commands/diagnostics/metrics.ts')).metrics,
  },
  mounts: { summary: 'List mounts', aliases: ['mount'], load: async () => (await import('./commands/disk/mounts.ts')).mounts },
  netstat: { summary: 'List sockets', aliases: ['ss'], load: async () => (await import('./commands/network/netstat.ts')).netstat },
  patch: {
    summary: 'Patch the machine configuration of nodes',
    load: async () => (await import('./commands/machineconfig/patch.ts')).patch,
  },
  pcap: {
    summary: 'Capture the packets of a link',
    aliases: ['tcpdump'],
    load: async () => (await import('./commands/network/pcap.ts')).pcap,
  },
  platform: {
    summary: 'Test what a machine reads from its platform',
    local: true,
    load: async () => (await import('./commands/platform/platform.ts')).platform,
  },
  processes: {
    summary: 'List processes',
    aliases: ['p', 'ps'],
    load: async () => (await import('./commands/process/processes.ts')).processes,
  },
  read: {
    summary: 'Write a file of a node to standard output',
    aliases: ['cat'],
    load: async () => (await import('./commands/file/read.ts')).read,
  },
  reboot: { summary: 'Reboot nodes', load: async () => (await import('./commands/lifecycle/reboot.ts')).reboot },
  reset: { summary: 'Wipe nodes', load: async () => (await import('./commands/lifecycle/reset.ts')).reset },
  restart: { summary: 'Restart a container', load: async () => (await import('./commands/container/restart.ts')).restart },
  rollback: {
    summary: 'Go back to the release that nodes had before',
    load: async () => (await import('./commands/lifecycle/rollback.ts')).rollback,
  },
  rotate: { summary: 'Replace keys of Kubernetes', load: async () => (await import('./commands/rotation/rotate.ts')).rotate },
  'rotate-ca': { summary: 'Replace the authorities', load: async () => (await import('./commands/rotation/rotate-ca.ts')).rotateCA },
  routes: { summary: 'Gone', aliases: ['route'], hidden: true, load: async () => (await import('./commands/client/deprecated.ts')).routes },
  service: {
    summary: 'List, show, start, stop or restart services',
    aliases: ['services'],
    load: async () => (await import('./commands/service/service.ts')).service,
  },
  shutdown: { summary: 'Shut nodes down', load: async () => (await import('./commands/lifecycle/shutdown.ts')).shutdown },
  stats: { summary: 'Show memory and CPU time of containers', load: async () => (await import('./commands/container/stats.ts')).stats },
  support: {
    summary: 'Collect logs and state of nodes into a zip file',
    load: async () => (await import('./commands/diagnostics/support.ts')).support,
  },
  time: { summary: 'Show the clocks of nodes', load: async () => (await import('./commands/diagnostics/time.ts')).time },
  upgrade: { summary: 'Upgrade nodes to another release', load: async () => (await import('./commands/lifecycle/upgrade.ts')).upgrade },
  'upgrade-k8s': {
    summary: 'Upgrade the Kubernetes of the cluster',
    load: async () => (await import('./commands/kubernetes/upgrade-k8s.ts')).upgradeK8s,
  },
  usage: { summary: 'Show how much directories hold', aliases: ['du'], load: async () => (await import('./commands/file/usage.ts')).usage },
  validate: {
    summary: 'Check a machine configuration',
    local: true,
    load: async () => (await import('./commands/machineconfig/validate.ts')).validate,
  },
  version: {
    summary: 'Show the versions of the client and of the nodes',
    load: async () => (await import('./commands/client/version.ts')).version,
  },
  volumes: {
    summary: 'Make and use recovery keys of encrypted volumes',
    load: async () => (await import('./commands/disk/volumes.ts')).volumes,
  },
  wipe: { summary: 'Wipe disks', load: async () => (await import('./commands/disk/wipe.ts')).wipe },
}
