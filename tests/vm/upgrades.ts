/**
 * One machine through everything that an upgrade may meet: it is installed from the medium, takes a good release, refuses
 * bad ones, and comes back by itself from releases that hang, panic, die or never answer. It stays in maintenance for that,
 * which is all that the slots need; at the end it is configured, restarts, and goes back. With ICHOR_VM_STATE what was reached
 * is kept.
 */
import { expect, test } from 'bun:test'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { diskOn } from '../../src/programs/factory/release/disk-file.ts'
import type { BlockAccess } from '../../src/wire/fat/block-access.ts'
import { FatVolume } from '../../src/wire/fat/volume.ts'
import { qmp } from './control.ts'
import { partitionIn } from './disks/partition.ts'
import { disk, TestMachine, uefi } from './machine.ts'
import { asAdministrator, oneNode } from './one-node.ts'
import { UpgradeSteps } from './upgrade/steps.ts'

const minutes = 60_000

/** Declares the steps, for a machine with UEFI and systemd-boot or with a BIOS and GRUB. */
export function testUpgrades(firmware: 'uefi' | 'bios'): void {
  const steps = new UpgradeSteps({
    name: `upgrade-${firmware}`,
    arch: 'amd64',
    start: (folder, cdrom) =>
      TestMachine.start({
        console: join(folder, 'console.log'),
        cdrom,
        disks: [disk(join(folder, 'disk.img'), 8 * 1024)],
        firmware: firmware === 'uefi' ? uefi(folder) : { kind: 'bios' },
        memory: 2048,
        restarts: true,
        control: join(folder, 'control'),
      }),
  })
  const press = (key: string) => qmp(steps.path('control'), 'send-key', { keys: [{ type: 'qcode', data: key }] })
  /** The first release that is taken. Only GRUB's machines restart without the firmware, and only unlocked. */
  const [better, other] = firmware === 'bios' ? (['unlocked', 'good'] as const) : (['good', 'unlocked'] as const)

  steps.installs()

  test.skipIf(steps.done('refused'))(
    'an image that is not signed, or not whole, is refused with nothing changed',
    async () => {
      await steps.answers()
      for (const [variant, why] of [
        ['unsigned', 'not signed with the key that this system trusts'],
        ['truncated', 'the transfer was incomplete'],
      ] as const) {
        const refused = await steps.upgrade(variant, '--no-wait')
        expect(refused.code).toBe(1)
        expect(refused.stderr).toContain(why)
        expect(refused.stderr).toContain('nothing was changed')
      }
      expect((await steps.machine.insecurely('get', 'metakeys')).stdout).not.toContain('0x06')
      steps.remember('refused')
    },
    60 * minutes,
  )

  steps.takes(better)

  if (firmware === 'bios')
    test.skipIf(steps.done('renewed'))(
      'after the power was off, the GRUB that a good release brought starts the machine',
      async () => {
        await steps.machine.unplug()
        await onPartition(steps.path('disk.img'), 'BIOS', async (cores, { offset }) => {
          const record = Buffer.from(await Bun.file(steps.path('disk.img')).slice(0, 512).arrayBuffer())
          expect(Number(record.readBigUInt64LE(0x5c)) * 512).toBe(offset + cores.size / 2)
          // Without the one of the installation only the new one is left.
          await cores.write(0, Buffer.alloc(cores.size / 2))
        })
        await steps.powerOn()
        await steps.answers()
        steps.remember('renewed')
      },
      30 * minutes,
    )

  for (const [variant, sign, why] of [
    ['panics', /Kernel panic/, 'did not come up'],
    ['dies', /Attempted to kill init/, 'did not come up'],
    ['hangs', /this release hangs/, 'did not come up'],
    ['mute', /release is on trial/, 'not healthy within'],
  ] as const)
    steps.comesBack(variant, sign, why)

  test.skipIf(steps.done('full'))(
    'an image that has no room is refused with nothing changed, and the machine still starts',
    async () => {
      await steps.machine.unplug()
      const slots = firmware === 'uefi' ? 'EFI' : 'BOOT'
      await onVolume(steps.path('disk.img'), slots, fill)
      await steps.powerOn()
      await steps.answers()
      const refused = await steps.upgrade('large', '--no-wait')
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(/too small: the image takes \d+ MiB, \d+ MiB are free; nothing was changed/)
      expect((await steps.machine.insecurely('get', 'metakeys')).stdout).not.toContain('0x06')
      await steps.machine.unplug()
      await onVolume(steps.path('disk.img'), slots, (volume) => volume.remove(filler))
      await steps.powerOn()
      steps.remember('full')
    },
    60 * minutes,
  )

  const admin = (...args: string[]) => asAdministrator(steps.folder, steps.machine.port, ...args)
  /** Once the kubelet runs apid does not go to another place any more, which ends what is being sent. */
  const runs = (slot: 'a' | 'b') =>
    steps.machine.until(
      `slot ${slot} runs its kubelet`,
      async () => {
        const [parameters, services] = [await admin('read', '/proc/cmdline'), await admin('services')]
        for (const { code, stderr } of [parameters, services]) if (code !== 0) throw new Error(stderr.trim())
        return parameters.stdout.includes(`ichor.slot=${slot}`) && /kubelet\s+Running/.test(services.stdout)
      },
      30 * minutes,
    )

  test.skipIf(steps.done('configured'))(
    'it takes a configuration, restarts without the firmware where that can be, and the slot stays',
    async () => {
      await steps.answers()
      const watchdog = '{apiVersion: v1alpha1, kind: WatchdogTimerConfig, device: /dev/watchdog0, timeout: 5m}'
      await oneNode(steps.folder, '--install-disk', '/dev/vda', '--config-patch', watchdog)
      await steps.machine.until(
        'the configuration is taken',
        async () =>
          (await steps.machine.insecurely('apply-config', '--file', steps.path('controlplane.yaml'))).code === 0 ||
          (await admin('version')).code === 0,
        20 * minutes,
      )
      await runs('b')
      expect((await admin('get', 'watchdogtimerstatus')).stdout).toMatch(/timer\s+\d+\s+\/dev\/watchdog0\s+5m0s/)
      steps.machine.forget()
      expect((await admin('reboot', '--wait=false')).code).toBe(0)
      if (firmware === 'bios') await steps.machine.shows(/kexec prepared/, 10 * minutes)
      await steps.machine.shows(/machine configuration found.*source=state/, 20 * minutes)
      await runs('b')
      // The boot loader sets its type in the kernel's boot parameters: kexec is 0xd (Documentation/arch/x86/boot.rst).
      if (firmware === 'bios') expect(Number((await admin('read', '/proc/sys/kernel/bootloader_type')).stdout) >> 4).toBe(0xd)
      steps.remember('configured')
    },
    90 * minutes,
  )

  test.skipIf(steps.done('upgraded'))(
    'it is upgraded as an administrator does it, and a kernel that is locked down leaves the restart to the firmware',
    async () => {
      await runs('b')
      steps.machine.forget()
      const upgraded = await admin('upgrade', '--image', await steps.variant(other), '--timeout', '40m')
      expect(upgraded.stderr).toContain('marked good')
      expect(upgraded.code).toBe(0)
      await runs('a')
      steps.machine.forget()
      expect((await admin('reboot', '--wait=false')).code).toBe(0)
      if (firmware === 'bios') await steps.machine.shows(/kexec unavailable, rebooting through the firmware/, 10 * minutes)
      await steps.machine.shows(/machine configuration found.*source=state/, 20 * minutes)
      steps.remember('upgraded')
    },
    120 * minutes,
  )

  test(
    'it goes back to the release before, which proves itself too',
    async () => {
      await runs('a')
      steps.machine.forget()
      expect((await admin('rollback')).code).toBe(0)
      await steps.machine.shows(/release marked good/, 40 * minutes)
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
        await steps.machine.unplug()
        await steps.powerOn()
        await steps.machine.until('the emulator listens', () => press('esc').then(() => true), minutes)
        // Nothing shows when the menu could be opened; once it is, this key changes nothing any more.
        for (const until = performance.now() + 20_000; performance.now() < until; await Bun.sleep(200)) await press('esc')
        await press('end')
        await press('ret')
        await steps.machine.shows(/Command line: .*talos\.experimental\.wipe=system:STATE,EPHEMERAL/, minutes)
        await steps.machine.shows(/maintenance: waiting /, 10 * minutes)
        const volumes = await steps.machine.outputs(() => steps.machine.insecurely('get', 'discoveredvolumes'), /STATE/, 10 * minutes)
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

/** Works on the files of a partition of the disk of a machine that is off. */
const onVolume = (file: string, label: string, work: (volume: FatVolume) => Promise<void>): Promise<void> =>
  onPartition(file, label, async (partition) => work(await FatVolume.open(partition)))

/** Works on a partition of the disk of a machine that is off. */
async function onPartition(
  file: string,
  label: string,
  work: (partition: BlockAccess, place: { offset: number }) => Promise<void>,
): Promise<void> {
  const { offset, size } = await partitionIn(file, label)
  const handle = await open(file, 'r+')
  try {
    await work(diskOn(handle, offset, size), { offset })
  } finally {
    await handle.close()
  }
}
