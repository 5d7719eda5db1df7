/**
 * The systemd unit that starts a cluster with its host. It is written and enabled without systemctl, so that it can be installed,
 * and removed from the journal alone, where systemd is not running: in an image, or from a rescue system.
 */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type ClusterRecord, writeAtomically } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'

/** Where an administrator's units are. */
const unitFolder = '/etc/systemd/system'
const target = 'multi-user.target'
/** What exists while systemd is the host's init: sd_booted(3). */
const booted = '/run/systemd/system'
const commandTimeout = 30_000

/** The name of a cluster's unit. */
export function unitName({ name, id }: Pick<ClusterRecord, 'name' | 'id'>): string {
  return `ichor-${name}-${id}.service`
}

/** The path of a cluster's unit. */
export function unitPath(cluster: Pick<ClusterRecord, 'name' | 'id'>, folder: string = unitFolder): string {
  return join(folder, unitName(cluster))
}

/** How this program is called by another: the path of its file and the arguments before its own, the first of which is argv[0]. */
export function programCommand(): [file: string, ...argv: string[]] {
  if (Bun.main.startsWith('/$bunfs/')) return [process.execPath, 'talosctl']
  return [process.execPath, 'bun', new URL('../../../../main.ts', import.meta.url).pathname, 'talosctl']
}

/**
 * The text of the unit. Rules of a packet filter that are loaded at boot replace those that are there, so the cluster's come after them.
 * Only the command itself belongs to the unit: a node that does not start must not end those that did.
 */
export function unitText(cluster: ClusterRecord, directory: string, command: readonly string[] = programCommand()): string {
  const { name, image, machines } = cluster
  const [file = '', ...argv] = command
  const call = (...args: string[]) => [`@${file}`, ...argv, ...args, '--name', name, '--state', dirname(directory)].map(quoted).join(' ')
  const needed = [directory, machines ? machines.images : image, file].map(quoted).join(' ')
  return `[Unit]
Description=Kubernetes cluster ${name} on this host
RequiresMountsFor=${needed}
After=network.target nftables.service netfilter-persistent.service firewalld.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=${call('cluster', 'start', '--wait=false')}
ExecStop=${call('cluster', 'stop')}
KillMode=process
TimeoutStartSec=10min
TimeoutStopSec=3min

[Install]
WantedBy=${target}
`
}

/** Refuses a host that does not have systemd. */
export function checkUnits(name: string, folder: string = unitFolder): void {
  if (existsSync(folder)) return
  throw new UsageError(
    `--restart-with-host: this host has no ${folder}: have its own init call "talosctl cluster start --name ${name} --wait=false" instead`,
  )
}

/** Writes and enables the unit of a cluster. */
export async function installUnit(cluster: ClusterRecord, directory: string, folder: string = unitFolder): Promise<void> {
  writeAtomically(unitPath(cluster, folder), unitText(cluster, directory))
  const link = wantedLink(unitName(cluster), folder)
  mkdirSync(dirname(link), { recursive: true, mode: 0o755 })
  rmSync(link, { force: true })
  symlinkSync(join('..', unitName(cluster)), link)
  await reload()
}

/** Disables and removes a unit; absent is fine. */
export async function removeUnit(name: string, folder: string = unitFolder): Promise<void> {
  const paths = [wantedLink(name, folder), join(folder, basename(name))]
  for (const path of paths) rmSync(path, { force: true })
  await reload()
}

function wantedLink(name: string, folder: string): string {
  return join(folder, `${target}.wants`, name)
}

/** Makes a running systemd read its units again. */
async function reload(): Promise<void> {
  if (!existsSync(booted)) return
  const child = spawn('systemctl', ['daemon-reload'], { stdio: 'ignore', timeout: commandTimeout })
  const code = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(127))
    child.once('exit', (code) => resolve(code ?? 1))
  })
  if (code !== 0) throw new Error(`"systemctl daemon-reload" ended with code ${code}`)
}

/** An argument in the syntax of systemd.syntax(7) and systemd.service(5), where % and $ have a meaning. */
function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./-]+$/.test(escaped) ? escaped : `"${escaped}"`
}
