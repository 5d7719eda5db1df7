import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { zstdCompressSync } from 'node:zlib'
import { makeClock } from '../../../../src/cosi/clock.ts'
import type { Logger } from '../../../../src/cosi/log.ts'
import type { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { VolumeStatus } from '../../../../src/os/block/resources/volume-status.ts'
import { ConfigApply } from '../../../../src/os/config/apply/config-apply.ts'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { acquireConfig } from '../../../../src/os/config/controllers/acquire.ts'
import { statePath } from '../../../../src/os/config/keep.ts'
import { AcquireConfigSpec, AcquireConfigStatus, acquireId } from '../../../../src/os/config/resources/acquire-config.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { embeddedPath } from '../../../../src/os/config/sources/embedded.ts'
import { decodeInline } from '../../../../src/os/config/sources/inline.ts'
import { defaultLimits } from '../../../../src/os/config/sources/search.ts'
import { largestConfig } from '../../../../src/os/config/sources/source.ts'
import { fillVariables, variablesOf } from '../../../../src/os/config/sources/variables.ts'
import { SystemInformation } from '../../../../src/os/hardware/resources/system-information.ts'
import { clouds } from '../../../../src/os/network/platform/clouds.ts'
import { HostnameStatus } from '../../../../src/os/network/resources/hostname.ts'
import { NetworkStatus } from '../../../../src/os/network/resources/network-status.ts'
import { EnvironmentConfig } from '../../../../src/os/runtime/documents/environment.ts'
import { MaintenanceServiceRequest } from '../../../../src/os/runtime/resources/maintenance-service.ts'
import { MetaKey } from '../../../../src/os/runtime/resources/meta.ts'
import { config, machineInMemory } from '../machine.ts'

const whole = config('worker', 'machine:\n  install:\n    disk: /dev/sda\n')
const part = (name: string) => `apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables:\n  FROM: ${name}\n`
const inline = (text: string) => zstdCompressSync(Buffer.from(text)).toString('base64')

/** Answers of a server, taken one after the other; the last stays. */
let answers: (() => Response | Promise<Response>)[] = []
const requested: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname, search } = new URL(request.url)
    requested.push(pathname + search)
    return (answers.length > 1 ? answers.shift()! : answers[0]!)()
  },
})
const here = `http://127.0.0.1:${server.port}`
afterAll(() => server.stop(true))
beforeEach(() => {
  requested.length = 0
  answers = [() => new Response(whole)]
})

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

interface Given {
  kept?: Record<string, string> | undefined
  cmdline?: string | undefined
  environment?: Record<string, string>
  mode?: 'metal' | 'container'
  files?: object
  mount?: object
  attempt?: number
  whole?: number
  /** Called in the place of each pause. */
  paused?: () => void
}

/** A machine that looks for its configuration; pauses are noted, not waited for. */
function machine({
  kept = {},
  cmdline = '',
  environment = {},
  mode = 'metal',
  files = {},
  mount = {},
  paused = () => {},
  ...limits
}: Given) {
  const parts = machineInMemory(kept)
  const lines: string[] = []
  const note =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push([level, message, ...Object.entries(fields).map(([key, value]) => `${key}=${value}`)].join(' '))
  const log: Logger = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    resolved: note('info'),
    with: () => log,
  }
  const runtime = new (parts.runtime.constructor as typeof Runtime)(parts.store, { log, clock: makeClock({ now: () => parts.clock.now }) })
  running.push(runtime)
  const kernel = { mode, files: { ...parts.files, readText: () => cmdline, exists: () => false, mkdirAll: () => {}, ...files }, mount }
  const pauses: number[] = []
  const sleep = async (milliseconds: number) => {
    pauses.push(milliseconds)
    paused()
  }
  const owner = { ...parts.machine, kernel, clouds: clouds({ ...kernel, store: parts.store } as never), outbound: { fetch } } as never
  const { state } = new ConfigApply(owner)
  runtime.register(acquireConfig(owner, state, { environment, sleep, limits: { ...defaultLimits, ...limits } }))
  runtime.start()
  parts.store.put(AcquireConfigSpec, acquireId, {})
  if (mode === 'metal') parts.store.put(VolumeStatus, 'STATE', { phase: 'missing', type: 'partition' })
  parts.store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  const { store, published } = parts
  return {
    store,
    published,
    lines,
    pauses,
    runtime,
    active: () => store.get(MachineConfig, 'v1alpha1')?.spec,
    kept: () => store.get(MachineConfig, 'persistent')?.spec,
    done: () => store.until(AcquireConfigStatus, acquireId, undefined, { signal: AbortSignal.timeout(5000) }),
    waiting: () => store.until(MaintenanceServiceRequest, 'maintenance', undefined, { signal: AbortSignal.timeout(5000) }),
  }
}

const sourcesIn = (lines: string[]) => lines.flatMap((line) => /machine configuration found source=(\S+)/.exec(line)?.[1] ?? [])

describe('the order of the sources', () => {
  const all = (text: (name: string) => string): Given => ({
    kept: { [embeddedPath]: text('embedded') },
    cmdline: `talos.platform=metal talos.config=${here}/x talos.config.early=${inline(text('early'))} talos.config.inline=${inline(text('late'))}`,
  })

  test('is state, embedded, early, platform, late: the first whole one ends it', async () => {
    const { kept, cmdline } = all(part)
    const { done, lines, active, runtime } = machine({ kept: { ...kept, [statePath]: whole }, cmdline })
    await done()
    await runtime.settled()
    expect(sourcesIn(lines)).toEqual(['state'])
    expect(active()).toBe(whole)
    expect(requested).toEqual([])
  })

  test('goes on while only parts are found, each completing the one before, and keeps nothing that is not whole', async () => {
    const given = all(part)
    const { done, lines, active, kept, store } = machine(given)
    const seen: (string | undefined)[] = []
    store.subscribe(MachineConfig, ({ resource }) => {
      if (resource?.metadata.id === 'v1alpha1') seen.push(ConfigContainer.parse(resource.spec).find(EnvironmentConfig)?.variables?.FROM)
    })
    await done()
    expect(sourcesIn(lines)).toEqual(['embedded', 'cmdline-early', 'metal'])
    expect(seen).toEqual(['embedded', 'early', 'early'])
    expect(ConfigContainer.parse(active()!).documents.map(({ label }) => label)).toEqual([
      'v1alpha1',
      'EnvironmentConfig',
      'HostnameConfig',
    ])
    expect(kept()).toBe(active()!)
  })

  test('ends in maintenance when none has a whole one, with the parts in force', async () => {
    const { cmdline } = all(part)
    const { waiting, lines, active, kept } = machine({ cmdline: cmdline!.replace(/talos.config=\S+/, 'talos.config=none') })
    await waiting()
    expect(sourcesIn(lines)).toEqual(['cmdline-early', 'cmdline-late'])
    expect(active()).toContain('FROM: late')
    expect(kept()).toBeUndefined()
  })

  test('in a container is state, its environment, maintenance', async () => {
    const { cmdline, kept } = all(() => whole)
    const none = machine({ kept, cmdline, mode: 'container' })
    await none.waiting()
    expect(sourcesIn(none.lines)).toEqual([])
    const given = config('worker')
    const some = machine({ kept, cmdline, mode: 'container', environment: { USERDATA: Buffer.from(given).toString('base64') } })
    await some.done()
    expect(sourcesIn(some.lines)).toEqual(['container'])
    expect(some.active()).toBe(given)
  })
})

describe('on the command line', () => {
  test('a configuration may come in pieces', async () => {
    const text = inline(whole)
    const { done, active } = machine({
      cmdline: `talos.config.inline=${text.slice(0, 100)} x talos.config.inline=${text.slice(100)} talos.platform=metal`,
    })
    await done()
    expect(active()).toBe(whole)
  })

  test('what cannot be read is one line on the console and an event, and the next source is read', async () => {
    const { done, published, lines } = machine({ cmdline: `talos.config.early=!!! talos.platform=metal talos.config=${here}/x` })
    await done()
    expect(published).toEqual(['machine.ConfigLoadErrorEvent: cmdline-early: read "talos.config.early": it is not base64'])
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([
      'error machine configuration could not be read source=cmdline-early error=read "talos.config.early": it is not base64',
    ])
  })

  test('what is not zstd, or far too much, is reported', () => {
    expect(() => decodeInline('aGVsbG8=', 'p')).toThrow('read "p": it is base64, but not of something zstd made')
    expect(() => decodeInline(inline('x'.repeat(largestConfig + 1)), 'p')).toThrow(`read "p": larger than ${largestConfig} bytes`)
  })
})

describe('a download', () => {
  const metal = (url: string, more: Given = {}) => machine({ cmdline: `talos.platform=metal talos.config=${url}`, ...more })

  test('is tried again, less and less often, until it can be used', async () => {
    answers = [
      () => new Response('no', { status: 503 }),
      () => new Response(''),
      () => new Response('machine: ['),
      () => new Response('version: v1alpha1\nmachine: {}\ncluster: {}\n'),
      () => new Response(whole),
    ]
    const { done, pauses, published, active, lines } = metal(`${here}/config`)
    await done()
    expect(active()).toBe(whole)
    expect(pauses).toEqual([1000, 2000, 4000, 8000])
    expect(published[0]).toBe(`machine.ConfigLoadErrorEvent: metal: fetch "${here}/config": the server answered 503 Service Unavailable`)
    expect(published[1]).toContain('the answer is empty')
    expect(published[2]).toStartWith('machine.ConfigLoadErrorEvent: metal: line 1, column')
    expect(published[3]).toStartWith('machine.ConfigValidationErrorEvent: metal:')
    for (const line of lines) expect(line).not.toContain('\n')
    expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(4)
  })

  test('from a server that is not there is reported with the cause', async () => {
    const { waiting, published } = metal('http://127.0.0.1:1/x', { whole: 5000 })
    await waiting()
    expect(published.length).toBeGreaterThan(1)
    expect(published[0]).toStartWith('machine.ConfigLoadErrorEvent: metal: fetch "http://127.0.0.1:1/x": ')
  })

  test('that takes too long is ended', async () => {
    answers = [() => new Promise<Response>(() => {}), () => new Response(whole)]
    const { done, published } = metal(`${here}/slow`, { attempt: 250 })
    await done()
    expect(published).toEqual([`machine.ConfigLoadErrorEvent: metal: fetch "${here}/slow": no answer in time`])
  })

  test('that is too large is ended', async () => {
    answers = [() => new Response('#'.repeat(largestConfig + 1)), () => new Response(whole)]
    const { done, published } = metal(`${here}/large`)
    await done()
    expect(published[0]).toContain(`larger than ${largestConfig} bytes`)
  })

  test('waits for what its address needs, and reports what is unknown', async () => {
    const { store, done, published } = metal(`${here}/c?u=\${uuid}&s=\${SERIAL}&uuid=`, {
      attempt: 10,
      whole: 1e9,
      paused: () => void store.put(SystemInformation, 'systeminformation', { uuid: 'u 1', serialnumber: 's&2' }),
    })
    await done()
    expect(published[0]).toBe(
      `machine.ConfigLoadErrorEvent: metal: fill in "${here}/c?u=\${uuid}&s=\${SERIAL}&uuid=": nothing known for "\${uuid}" (UUID of the machine), "\${serial}" (serial number of the machine)`,
    )
    expect(requested.at(-1)).toBe('/c?u=u%201&s=s%262&uuid=u%201')
  })

  test('by a broken address is reported once, because it stays broken', async () => {
    const { waiting, published } = metal('ftp://x/y')
    await waiting()
    expect(published).toEqual([
      'machine.ConfigLoadErrorEvent: metal: read "talos.config": "ftp://x/y" is neither an http(s) or tftp address nor metal-iso nor none',
    ])
  })
})

test('a machine without a platform reports it once and waits in maintenance', async () => {
  const { waiting, published } = machine({ cmdline: 'quiet' })
  await waiting()
  expect(published).toEqual(['machine.ConfigLoadErrorEvent: platform: read platform: "talos.platform" is not on the kernel command line'])
})

describe('variables', () => {
  const never = AbortSignal.abort()

  test('are filled in anywhere in the address, in any case, as the address needs them', async () => {
    const store = new Store()
    store.put(HostnameStatus, 'hostname', { hostname: 'a b', domainname: '' })
    store.put(MetaKey, '0x0b', { value: '1/2' })
    expect(await fillVariables(`https://x/\${HostName}/\${code}?h=\${hostname}`, store, never)).toBe('https://x/a%20b/1%2F2?h=a%20b')
  })

  test('that nobody knows are refused by name', () => {
    expect(() => variablesOf(`http://x/\${disk}`)).toThrow(
      /unknown variable "\$\{disk\}" in "http:\/\/x\/\$\{disk\}", known are uuid, serial, mac, hostname, code/,
    )
  })
})

test('a disk labelled metal-iso is mounted read only, read and let go', async () => {
  const calls: string[] = []
  const { done, active } = machine({
    cmdline: 'talos.platform=metal talos.config=metal-iso',
    kept: { '/run/config-disk/config.yaml': whole },
    files: { exists: (path: string) => path === '/dev/disk/by-label/metal-iso' },
    mount: {
      mount({ source, type, flags }: { source: string; type: string; flags: string[] }) {
        calls.push(`mount ${source} ${type} ${flags[0]}`)
        if (type === 'iso9660') throw new Error('mount: EINVAL')
      },
      umount: (target: string) => void calls.push(`umount ${target}`),
    },
  })
  await done()
  expect(active()).toBe(whole)
  const device = '/dev/disk/by-label/metal-iso'
  expect(calls).toEqual([`mount ${device} iso9660 ro`, `mount ${device} vfat ro`, 'umount /run/config-disk'])
})

test('a disk that does not appear is reported', async () => {
  const { waiting, published } = machine({ cmdline: 'talos.platform=metal talos.config=metal-iso', attempt: 20, whole: 0 })
  await waiting()
  expect(published).toEqual(['machine.ConfigLoadErrorEvent: metal: read configuration disk: there is no file system labelled "metal-iso"'])
})
