/**
 * One machine through everything that an upgrade may meet: it is installed from the medium, takes a good release, refuses
 * bad ones, and comes back by itself from releases that hang, panic, die or never answer. It stays in maintenance for that,
 * which is all that the slots need; at the end it is configured, restarts, and goes back. With ICHOR_VM_STATE what was reached
 * is kept.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { diskOn } from '../../rootfs/image/disk-file.ts'
import { FatVolume } from '../../src/wire/fat/volume.ts'
import { readTable } from '../../src/wire/gpt/table.ts'
import { viewOf } from '../../src/wire/probe/view.ts'
import { qmp } from './control.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { asAdministrator, oneNode } from './one-node.ts'
import { forgetVariants, makeVariant, type Variant } from './variants.ts'

const minutes = 60_000
const image = process.env.ICHOR_VM_IMAGE ?? dist
const installer = join(image, 'ichor-installer-amd64.tar')

/** Declares the steps, for a machine with UEFI and systemd-boot or with a BIOS and GRUB. */
export function testUpgrades(firmware: 'uefi' | 'bios'): void {
  const folder = stateFolder(`upgrade-${firmware}`)
  const path = (name: string) => join(folder, name)
  const done = (step: string) => existsSync(path(step))
  const remember = (step: string) => writeFileSync(path(step), '')
  let machine: TestMachine

  const powerOn = async () => {
    machine = await TestMachine.start({
      console: path('console.log'),
      cdrom: done('installed') ? undefined : join(image, 'ichor-amd64.iso'),
      disks: [disk(path('disk.img'), 8 * 1024)],
      firmware: firmware === 'uefi' ? uefi(folder) : { kind: 'bios' },
      memory: 2048,
      restarts: true,
      control: path('control'),
    })
  }
  const press = (key: string) => qmp(path('control'), 'send-key', { keys: [{ type: 'qcode', data: key }] })
  /** The API answers; under emulation that takes its time. */
  const answers = () => machine.until('the API answers', async () => (await machine.insecurely('version')).code === 0, 20 * minutes)

  beforeAll(async () => {
    await powerOn()
    console.log(`console: ${path('console.log')}`)
  }, minutes)
  afterAll(async () => {
    await machine.unplug()
    forgetState(folder)
    forgetVariants()
  })

  /** The first release that is taken. Only GRUB's machines restart without the firmware, and only unlocked. */
  const [better, other] = firmware === 'bios' ? (['unlocked', 'good'] as const) : (['good', 'unlocked'] as const)

  /** Sends a release and has it written and started, without waiting for what becomes of it. */
  const upgrade = async (variant: Variant, ...flags: string[]) =>
    machine.insecurely('upgrade', '--image', await makeVariant(installer, variant), ...flags)

  test.skipIf(done('installed'))(
    'the plan lists what would be written where, and the installation does it',
    async () => {
      await answers()
      const nowhere = await machine.insecurely('install', '--plan')
      expect(nowhere.code).toBe(1)
      expect(nowhere.stdout).toContain('/dev/vda')
      const plan = await machine.insecurely('install', '--plan', '--disk', '/dev/vda')
      expect(plan.stderr + plan.stdout).toMatch(/partition\s+\/dev\/vda\d META/)
      expect(plan.code).toBe(0)
      const done = await machine.insecurely('install', '--disk', '/dev/vda')
      expect(done.stderr).toContain('installed v')
      expect(done.code).toBe(0)
      remember('installed')
      await machine.unplug()
      await powerOn()
      await answers()
      expect((await machine.insecurely('get', 'systemdisk')).stdout).toMatch(/vda/)
    },
    60 * minutes,
  )

  test.skipIf(done('refused'))(
    'an image that is not signed, or not whole, is refused with nothing changed',
    async () => {
      await answers()
      for (const [variant, why] of [
        ['unsigned', 'not signed with the key that this system trusts'],
        ['truncated', 'the transfer was incomplete'],
      ] as const) {
        const refused = await upgrade(variant, '--no-wait')
        expect(refused.code).toBe(1)
        expect(refused.stderr).toContain(why)
        expect(refused.stderr).toContain('nothing was changed')
      }
      expect((await machine.insecurely('get', 'metakeys')).stdout).not.toContain('0x06')
      remember('refused')
    },
    60 * minutes,
  )

  test.skipIf(done('good'))(
    'a good release is tried, proves itself and is marked good',
    async () => {
      await answers()
      const dry = await upgrade(better, '--dry-run')
      expect(dry.stdout).toMatch(/ok\s+slot\s+B is written, A stays as it is/)
      const upgraded = await upgrade(better, '--timeout', '30m')
      expect(upgraded.stderr).toContain('marked good')
      expect(upgraded.code).toBe(0)
      expect(machine.console).toMatch(new RegExp(`release marked good.*version=v\\S+-${better}`))
      if (firmware === 'uefi') await machine.shows(/boot loader renewed/, minutes)
      remember('good')
    },
    60 * minutes,
  )

  for (const [variant, sign, why] of [
    ['panics', /Kernel panic/, 'did not come up'],
    ['dies', /Attempted to kill init/, 'did not come up'],
    ['hangs', /this release hangs/, 'did not come up'],
    ['mute', /release is on trial/, 'not healthy within'],
  ] as const)
    test.skipIf(done(variant))(
      `from one that ${variant === 'mute' ? 'is mute' : variant} the machine comes back to the release before it`,
      async () => {
        await answers()
        machine.forget()
        const begun = await upgrade(variant, '--no-wait')
        expect(begun.stderr).toContain('is on trial from the next boot')
        await machine.shows(sign, 20 * minutes)
        // Nothing watches a kernel that hangs before it has a watchdog: an operator has to power-cycle the machine.
        for (let again = 0; variant === 'hangs' && again < 3; again++) {
          await machine.shows(sign, 20 * minutes)
          await machine.unplug()
          await powerOn()
        }
        await machine.until(
          'the release before it answers',
          async () => (await machine.insecurely('get', 'metakeys')).stdout.includes(`-${variant}`),
          40 * minutes,
        )
        const keys = await machine.insecurely('get', 'metakeys', '-o', 'yaml')
        expect(keys.stdout).toContain(why)
        const refused = await upgrade(variant, '--no-wait')
        expect(refused.stderr).toContain('it failed on this node')
        expect(refused.code).toBe(1)
        remember(variant)
      },
      90 * minutes,
    )

  test.skipIf(done('full'))(
    'an image that has no room is refused with nothing changed, and the machine still starts',
    async () => {
      await machine.unplug()
      const slots = firmware === 'uefi' ? 'EFI' : 'BOOT'
      await onPartition(path('disk.img'), slots, fill)
      await powerOn()
      await answers()
      const refused = await upgrade('large', '--no-wait')
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(/too small: the image takes \d+ MiB, \d+ MiB are free; nothing was changed/)
      expect((await machine.insecurely('get', 'metakeys')).stdout).not.toContain('0x06')
      await machine.unplug()
      await onPartition(path('disk.img'), slots, (volume) => volume.remove(filler))
      await powerOn()
      remember('full')
    },
    60 * minutes,
  )

  const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)
  /** Once the kubelet runs apid does not go to another place any more, which ends what is being sent. */
  const runs = (slot: 'a' | 'b') =>
    machine.until(
      `slot ${slot} runs its kubelet`,
      async () => {
        const [parameters, services] = [await admin('read', '/proc/cmdline'), await admin('services')]
        for (const { code, stderr } of [parameters, services]) if (code !== 0) throw new Error(stderr.trim())
        return parameters.stdout.includes(`ichor.slot=${slot}`) && /kubelet\s+Running/.test(services.stdout)
      },
      30 * minutes,
    )

  test.skipIf(done('configured'))(
    'it takes a configuration, restarts without the firmware where that can be, and the slot stays',
    async () => {
      await answers()
      const watchdog = '{apiVersion: v1alpha1, kind: WatchdogTimerConfig, device: /dev/watchdog0, timeout: 5m}'
      await oneNode(folder, '--install-disk', '/dev/vda', '--config-patch', watchdog)
      await machine.until(
        'the configuration is taken',
        async () =>
          (await machine.insecurely('apply-config', '--file', path('controlplane.yaml'))).code === 0 || (await admin('version')).code === 0,
        20 * minutes,
      )
      await runs('b')
      expect((await admin('get', 'watchdogtimerstatus')).stdout).toMatch(/timer\s+\d+\s+\/dev\/watchdog0\s+5m0s/)
      machine.forget()
      expect((await admin('reboot', '--wait=false')).code).toBe(0)
      if (firmware === 'bios') await machine.shows(/kexec prepared/, 10 * minutes)
      await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
      await runs('b')
      // The boot loader sets its type in the kernel's boot parameters: kexec is 0xd (Documentation/arch/x86/boot.rst).
      if (firmware === 'bios') expect(Number((await admin('read', '/proc/sys/kernel/bootloader_type')).stdout) >> 4).toBe(0xd)
      remember('configured')
    },
    90 * minutes,
  )

  test.skipIf(done('upgraded'))(
    'it is upgraded as an administrator does it, and a kernel that is locked down leaves the restart to the firmware',
    async () => {
      await runs('b')
      machine.forget()
      const upgraded = await admin('upgrade', '--image', await makeVariant(installer, other), '--timeout', '40m')
      expect(upgraded.stderr).toContain('marked good')
      expect(upgraded.code).toBe(0)
      await runs('a')
      machine.forget()
      expect((await admin('reboot', '--wait=false')).code).toBe(0)
      if (firmware === 'bios') await machine.shows(/kexec unavailable, rebooting through the firmware/, 10 * minutes)
      await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
      remember('upgraded')
    },
    120 * minutes,
  )

  test(
    'it goes back to the release before, which proves itself too',
    async () => {
      await runs('a')
      machine.forget()
      expect((await admin('rollback')).code).toBe(0)
      await machine.shows(/release marked good/, 40 * minutes)
      await runs('b')
      expect((await admin('get', 'metakeys')).stdout).not.toContain('0x06')
    },
    90 * minutes,
  )

  // Only GRUB's menu has this entry.
  if (firmware === 'bios')
    test(
      'from the last entry of the boot menu it starts without what it was, and waits for a configuration',
      async () => {
        await machine.unplug()
        await powerOn()
        await machine.until('the emulator listens', () => press('esc').then(() => true), minutes)
        // Nothing shows when the menu could be opened; once it is, this key changes nothing any more.
        for (const until = performance.now() + 20_000; performance.now() < until; await Bun.sleep(200)) await press('esc')
        await press('end')
        await press('ret')
        await machine.shows(/Command line: .*talos\.experimental\.wipe=system:STATE,EPHEMERAL/, minutes)
        await machine.shows(/maintenance: waiting /, 10 * minutes)
        const volumes = await machine.outputs(() => machine.insecurely('get', 'discoveredvolumes'), /STATE/, 10 * minutes)
        expect(volumes).not.toMatch(/xfs\s.*(STATE|EPHEMERAL)/)
      },
      30 * minutes,
    )
}
const filler = '/filler'

/** Takes all room but a few mebibytes. */
async function fill(volume: FatVolume): Promise<void> {
  await volume.remove(filler)
  const zeros = Buffer.alloc(1 << 20)
  const pieces = Math.floor(volume.free / zeros.length) - 8
  const content = async function* () {
    for (let piece = 0; piece < pieces; piece++) yield zeros
  }
  await volume.create(filler, content(), pieces * zeros.length)
}

/** Works on a partition of the disk of a machine that is off. */
async function onPartition(file: string, label: string, work: (volume: FatVolume) => Promise<void>): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    const { size } = await handle.stat()
    const whole = diskOn(handle, 0, size)
    const ends = [0, size - (1 << 20)]
    const stretches = await Promise.all(ends.map(async (offset) => ({ offset, bytes: await whole.read(offset, 1 << 20) })))
    const partition = readTable(viewOf(size, stretches), 512).partitions.find(({ name }) => name === label)
    if (!partition) throw new Error(`"${file}" has no partition ${label}`)
    await work(await FatVolume.open(diskOn(handle, partition.first * 512, (partition.last + 1 - partition.first) * 512)))
  } finally {
    await handle.close()
  }
}
