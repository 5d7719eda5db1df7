/**
 * From a medium to a machine that starts from its disk: the ISO on a machine with UEFI, maintenance, the first configuration, the
 * installation. With ICHOR_VM_STATE the state is kept, and the next run of the story continues from there.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { apiServer, asAdministrator, oneNode } from './one-node.ts'

const minutes = 60_000

/** The machine of a story, installed by the first steps. */
export interface Installed {
  /** There once the story has begun. */
  readonly machine: TestMachine
  /** Powers the machine on again after it was unplugged. */
  powerOn(): Promise<void>
  /** A file of the story. */
  path(name: string): string
  /** Whether a step was completed in an earlier run. */
  done(step: string): boolean
  remember(step: string): void
  /** Runs talosctl as the administrator of the configuration that was made. */
  admin(...args: string[]): ReturnType<typeof asAdministrator>
}

/** What a story's machine has besides. */
interface Needs {
  /** Lets the machine out to the host, which is 10.0.2.2 for it. Default: false. */
  readonly outside?: boolean
  /** More flags of `gen config`. */
  readonly flags?: readonly string[]
  /** Empty disks besides that of the system: mebibytes by their serial number, which is the name of their file too. */
  readonly disks?: Readonly<Record<string, number>>
}

/** Declares the steps of an installation; after them the machine is configured and started from its disk. */
export function testInstallation(story: string, { outside = false, flags = [], disks = {} }: Needs = {}): Installed {
  const folder = stateFolder(story)
  const path = (name: string) => join(folder, name)
  const done = (step: string) => existsSync(path(step))
  const remember = (step: string) => writeFileSync(path(step), '')
  let machine: TestMachine
  const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)

  const powerOn = async () => {
    machine = await TestMachine.start({
      console: path('console.log'),
      // With the medium for as long as nothing is installed.
      cdrom: done('installed') ? undefined : join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
      disks: [
        disk(path('disk.img'), 12 * 1024),
        ...Object.entries(disks).map(([serial, size]) => disk(path(`${serial}.img`), size, 'virtio', serial)),
      ],
      firmware: uefi(folder),
      memory: 4096,
      ports: [apiServer],
      outside,
      restarts: true,
    })
  }
  beforeAll(async () => {
    await powerOn()
    console.log(`console: ${path('console.log')}`)
  })
  afterAll(async () => {
    await machine.unplug()
    forgetState(folder)
  })

  test.skipIf(done('installed'))(
    'the medium starts the machine, which waits for a configuration and prints its address and fingerprint',
    async () => {
      await machine.shows(/maintenance: waiting for a machine configuration.*addresses=10\.0\.2\.15/, 10 * minutes)
      await machine.shows(/service=apid .*"Health check successful"/, 10 * minutes)
      expect(machine.console).not.toMatch(/init dies|Kernel panic/)
      await machine.outputs(() => machine.insecurely('version'), /Server:[\s\S]*v1\.13\.\d+/, 10 * minutes)
      await machine.outputs(() => machine.insecurely('get', 'disks'), /vda/, 10 * minutes)
      const phases = await machine.outputs(() => machine.insecurely('get', 'bootphases'), /start\s+kernel\s+done/, 10 * minutes)
      expect(phases).toMatch(/initialize\s+systemRequirements\s+done/)
      expect(await machine.outputs(() => machine.insecurely('get', 'systemdisk'), /NODE/, 10 * minutes)).not.toMatch(/vda/)
    },
    60 * minutes,
  )

  test.skipIf(done('installed'))(
    'a configuration that names a disk which is not there is refused at once and names it',
    async () => {
      await oneNode(folder, '--install-disk', '/dev/nvme7n1')
      const refusal = await machine.until(
        'the refusal',
        async () => {
          const { code, stderr } = await machine.insecurely('apply-config', '--file', path('controlplane.yaml'))
          if (code === 0) throw new Error('the configuration was taken')
          if (!/InvalidArgument/.test(stderr)) throw new Error(stderr.trim())
          return stderr
        },
        10 * minutes,
      )
      expect(refusal).toContain('/dev/nvme7n1')
      expect(refusal).toContain('/dev/vda')
    },
    15 * minutes,
  )

  test.skipIf(done('installed'))(
    'the first configuration installs the system, and the machine starts from its disk',
    async () => {
      await oneNode(folder, '--install-disk', '/dev/vda', ...flags)
      const fingerprint = [...machine.console.matchAll(/fingerprint="?([A-Za-z0-9+/]{43}=)/g)].at(-1)?.[1] ?? ''
      const apply = ['apply-config', '--file', path('controlplane.yaml'), '--cert-fingerprint', fingerprint]
      // On a slow machine the response may time out although the configuration was applied.
      const taken = async () => /sequence=install/.test(machine.console) || (await machine.insecurely(...apply)).code === 0
      await machine.until('the configuration is taken', taken, 10 * minutes)
      await machine.shows(/sequence=install phase=install /, 30 * minutes)
      await machine.shows(/sequence=install phase=saveState /, 15 * minutes)
      await machine.shows(/sequence=install phase=stopEverything /, 15 * minutes)
      machine.forget()
      await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
      remember('installed')
    },
    100 * minutes,
  )

  test(
    'from its disk it has its identity, its volumes and its hardening',
    async () => {
      await machine.outputs(() => admin('get', 'systemdisk'), /vda/, 10 * minutes)
      const volumes = await machine.outputs(() => admin('get', 'volumestatus'), /EPHEMERAL\s+\S+\s+partition\s+ready/, 10 * minutes)
      for (const id of ['META', 'STATE']) expect(volumes).toMatch(new RegExp(`${id}\\s+\\S+\\s+partition\\s+ready`))
      const mounts = await machine.outputs(() => admin('mounts'), / \/var\n/, 5 * minutes)
      expect(mounts).toMatch(/\/system\/state/)
      await machine.outputs(() => admin('read', '/proc/sys/kernel/modules_disabled'), /^1$/m, 10 * minutes)
      expect((await admin('get', 'bootphases')).stdout).toMatch(/boot\s+ephemeral\s+done/)
    },
    80 * minutes,
  )

  return {
    get machine() {
      return machine
    },
    powerOn,
    path,
    done,
    remember,
    admin,
  }
}
