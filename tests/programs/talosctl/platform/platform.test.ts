import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { platforms } from '../../../../src/os/network/platform/platforms.ts'
import { platformSchema } from '../../../../src/programs/talosctl/commands/platform/platform.ts'
import { mismatches } from '../../../../src/programs/talosctl/output/schema.ts'
import { config } from '../../../os/config/machine.ts'
import { nics, platformIn, type Recording, recordings } from '../../../os/network/platform/recordings.ts'
import { talosctl } from '../peer.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean()
})

/** A recording over HTTP: paths of every host of the platform below one. */
function served({ answers = {} }: Pick<Recording, 'answers'>): string {
  const byPath = Object.fromEntries(Object.entries(answers).map(([url, answer]) => [url.replace(/^https?:\/\/[^/?]+/, ''), answer]))
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      const answer = byPath[pathname + search]
      const { method, headers } = request
      const text = typeof answer === 'function' ? answer({ method, headers: Object.fromEntries(headers) }) : answer
      return text === undefined ? new Response('there is none', { status: 404 }) : new Response(text)
    },
  })
  cleanups.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}`
}

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-platform-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text)
  return folder
}

const whole = config('worker', 'machine:\n  install:\n    disk: /dev/sda\n')
const links = nics.flatMap(({ name, hardwareAddress }) => ['--link', `${name}=${hardwareAddress}`])

for (const [name, recording] of Object.entries(recordings))
  test(`${name}: is read through the flags as a machine reads it`, async () => {
    const { answers, disks, optical, guestinfo, want } = recording
    const flags = [...links, '-o', 'json']
    if (answers && Object.keys(answers).length > 0) flags.push('--metadata', `${served(recording)}${recording.serial ? '/seed' : ''}`)
    const files = Object.values(disks ?? optical ?? {})[0] ?? guestinfo
    if (files) flags.push('--config-drive', await folderWith(files))
    const { stdout } = await talosctl([], ['platform', 'test', platformIn(name), ...flags])
    const [preview] = JSON.parse(stdout)
    expect(mismatches(preview, platformSchema)).toEqual([])
    expect(preview.networkError).toBeUndefined()
    expect(preview.hostname).toBe(want.hostname.replace(' ', '.'))
    expect(preview.metadata).toEqual(want.metadata)
    expect(preview.externalIPs).toEqual(want.external ?? [])
    expect(preview.network.addresses).toHaveLength(want.addresses?.length ?? 0)
    expect(preview.network.routes).toHaveLength(want.routes?.length ?? 0)
    // The user data of the recordings is a configuration with a type and nothing else.
    expect(preview.config.state).toBe('invalid')
  })

test('a table shows the configuration, the network of the links that the metadata names, and the identity', async () => {
  const answers = { ...recordings['digital-ocean']!.answers, 'http://169.254.169.254/metadata/v1/user-data': whole }
  const { code, stdout, stderr } = await talosctl([], ['platform', 'test', 'digital-ocean', '--metadata', served({ answers })])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^CONFIGURATION +valid: v1alpha1/m)
  expect(stdout).toMatch(/^HOST NAME +node-5$/m)
  expect(stdout).toMatch(/^LINKS OF THE MACHINE +eth0 02:00:00:00:00:01, eth1 02:00:00:00:00:02$/m)
  expect(stdout).toMatch(/^address +eth0 +198\.51\.100\.8\/20$/m)
  expect(stdout).toMatch(/^route +eth0 +default via 198\.51\.96\.1 metric 1024$/m)
  expect(stdout).toMatch(/^providerId +digitalocean:\/\/271828$/m)
})

test('hardware addresses of Azure, which have no colons, are found as well', async () => {
  const { stdout } = await talosctl([], ['platform', 'test', 'azure', '--metadata', served(recordings.azure!), '-o', 'json'])
  expect(JSON.parse(stdout)[0].links.map(({ hardwareAddress }: { hardwareAddress: string }) => hardwareAddress)).toEqual(
    nics.map(({ hardwareAddress }) => hardwareAddress),
  )
})

test('the first error of a configuration is shown and is the exit code', async () => {
  const broken = { 'http://169.254.169.254/latest/user-data': 'machine: [' }
  const { code, stdout } = await talosctl([], ['platform', 'test', 'vultr', '--metadata', served({ answers: broken })])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^CONFIGURATION +invalid: line 1, column/m)
})

test('a server with nothing gives no configuration, and one that fails is named', async () => {
  const nothing = await talosctl([], ['platform', 'test', 'gcp', '--metadata', served({})])
  expect(nothing.code).toBe(0)
  expect(nothing.stdout).toContain('none: the machine would wait in maintenance')
  const { code, stdout } = await talosctl([], ['platform', 'test', 'gcp', '--metadata', 'http://127.0.0.1:1'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^NETWORK +fetch "http:\/\/127\.0\.0\.1:1\/computeMetadata\/v1\/instance\/\?recursive=true&alt=json": /m)
})

test('what is no platform, no URL and no link is refused in one line', async () => {
  const refused = async (...flags: string[]) => (await talosctl([], ['platform', 'test', ...flags])).stderr.trimEnd()
  expect(await refused('azrue')).toBe(`unknown platform "azrue": there are ${Object.keys(platforms).join(', ')}`)
  expect(await refused('toString')).toStartWith('unknown platform "toString"')
  expect(await refused('aws', '--metadata', '127.0.0.1')).toStartWith('"127.0.0.1" is not the base URL of a metadata server')
  expect(await refused('aws', '--link', 'eth0')).toStartWith('"eth0" is not a link')
})
