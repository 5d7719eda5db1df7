/** The configuration of a control plane of its own, for stories that install one machine. */
import { expect } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Result, type TestMachine, talosctl } from './machine.ts'

const minutes = 60_000

/** Makes controlplane.yaml and talosconfig in a folder, with the same secrets whenever it is called; gives the first as text. */
export async function generateControlPlane(folder: string): Promise<string> {
  const secrets = join(folder, 'secrets.yaml')
  if (!existsSync(secrets)) expect((await talosctl(['gen', 'secrets', '--output-file', secrets])).code).toBe(0)
  const made = await talosctl([
    ...['gen', 'config', 'emulated', 'https://10.0.2.15:6443', '--with-secrets', secrets, '--output', folder, '--force'],
    ...['--additional-sans', '127.0.0.1', '--no-with-docs', '--no-with-examples', '--install-disk', '/dev/vda'],
    ...['--config-patch', '{"machine":{"time":{"disabled":true}},"cluster":{"discovery":{"enabled":false}}}'],
  ])
  expect(made.stderr).not.toContain('error')
  return Bun.file(join(folder, 'controlplane.yaml')).text()
}

/** Hands a configuration to a machine that waits for one. */
export async function configure(machine: TestMachine, folder: string, configuration: string): Promise<void> {
  await machine.shows(/maintenance: waiting for a machine configuration.*addresses=10\.0\.2\.15/, 15 * minutes)
  await machine.shows(/service=apid .*"Health check successful"/, 15 * minutes)
  const file = join(folder, 'whole.yaml')
  writeFileSync(file, configuration)
  await machine.until(
    'the configuration is taken',
    async () => {
      const { code, stderr } = await machine.insecurely('apply-config', '--file', file)
      if (code !== 0) throw new Error(stderr)
      return true
    },
    5 * minutes,
  )
}

/** Runs talosctl against a configured machine. */
export const asAdmin = (machine: TestMachine, folder: string, args: readonly string[]): Promise<Result> =>
  talosctl(['--talosconfig', join(folder, 'talosconfig'), '--endpoints', `127.0.0.1:${machine.port}`, '--nodes', '127.0.0.1', ...args])

/** Waits for what a command says. */
export const says = (machine: TestMachine, command: () => Promise<Result>, what: RegExp, deadline = 15 * minutes): Promise<string> =>
  machine.until(
    `${what}`,
    async () => {
      const { code, stdout, stderr } = await command()
      if (code !== 0) throw new Error(stderr.trim())
      return what.test(stdout) && stdout
    },
    deadline,
  )

/** Waits until a volume has come so far. */
export const volumeIs = (machine: TestMachine, folder: string, id: string, phase = 'ready'): Promise<string> =>
  says(machine, () => asAdmin(machine, folder, ['get', 'volumestatus', id]), new RegExp(`${id}\\s+\\d+\\s+\\S+\\s+${phase}`))
