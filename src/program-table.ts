/** The programs of the binary by their names (argv[0]). Only names are known here; a program is evaluated when it is selected. */

/** The interface of a program. */
export interface Program {
  main(args: string[]): Promise<number>
}

/**
 * A program, the folder of the root file system with a link of its name, and whether the computer that builds the binary gets a link
 * beside it.
 */
interface Entry {
  readonly load: () => Promise<Program>
  readonly folder?: '/usr/bin' | '/usr/sbin'
  readonly host?: true
}

export const programs: Readonly<Record<string, Entry>> = {
  init: { load: () => import('./programs/init/init.ts'), folder: '/usr/sbin' },
  apid: { load: () => import('./programs/apid/apid.ts'), folder: '/usr/bin' },
  trustd: { load: () => import('./programs/trustd/trustd.ts'), folder: '/usr/bin' },
  metricsd: { load: () => import('./programs/metricsd/metricsd.ts'), folder: '/usr/bin' },
  talosctl: { load: () => import('./programs/talosctl/talosctl.ts'), folder: '/usr/bin', host: true },
  exec: { load: () => import('./programs/exec/exec.ts'), folder: '/usr/bin' },
  wireguard: { load: () => import('./programs/wireguard/wireguard.ts'), folder: '/usr/bin' },
  'etcd-verify': { load: () => import('./programs/etcd-verify/etcd-verify.ts'), folder: '/usr/bin' },
  'node-supervisor': { load: () => import('./programs/node-supervisor/node-supervisor.ts'), host: true },
  dashboard: { load: () => import('./programs/dashboard/dashboard.ts'), folder: '/usr/sbin' },
  factory: { load: () => import('./programs/talosctl/commands/factory/program.ts'), host: true },
  discovery: { load: () => import('./programs/discovery/discovery.ts'), host: true },
}
