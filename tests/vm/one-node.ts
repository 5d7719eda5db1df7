/** The configuration of a cluster that is one emulated machine, behind a network that leads nowhere. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandResult } from '../support/command-result.ts'
import { talosctl } from './machine.ts'

/** Where its Kubernetes answers, inside. */
export const apiServer = 6443

/** Writes `controlplane.yaml` and `talosconfig` into a folder; secrets are made once. Throws the error output of talosctl. */
export async function oneNode(folder: string, ...flags: string[]): Promise<void> {
  const secrets = join(folder, 'secrets.yaml')
  if (!existsSync(secrets)) succeeded(await talosctl(['gen', 'secrets', '--output-file', secrets]))
  succeeded(
    await talosctl([
      ...['gen', 'config', 'emulated', `https://10.0.2.15:${apiServer}`, '--with-secrets', secrets, '--output', folder, '--force'],
      ...['--additional-sans', '127.0.0.1', '--no-with-docs', '--no-with-examples', ...flags],
      // No time server answers there.
      ...['--config-patch', '{"machine":{"time":{"disabled":true}},"cluster":{"discovery":{"enabled":false}}}'],
    ]),
  )
}

/** Flags of talosctl for the administrator of the configuration in a folder, and for a machine's API on the loopback. */
export const administratorFlags = (folder: string, port: number): string[] => [
  ...['--talosconfig', join(folder, 'talosconfig'), '--endpoints', `127.0.0.1:${port}`, '--nodes', '127.0.0.1'],
]

/** Runs talosctl as that administrator. */
export const asAdministrator = (folder: string, port: number, ...args: string[]): Promise<CommandResult> =>
  talosctl([...administratorFlags(folder, port), ...args])

function succeeded({ code, stderr }: CommandResult): void {
  if (code !== 0) throw new Error(stderr.trim())
}
