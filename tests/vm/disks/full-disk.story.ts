/**
 * A machine whose EPHEMERAL others have filled to its last megabytes: it starts, its API and its logs answer, `explain` names who
 * fills it, and an upgrade is taken. It is filled while the machine is off, so nothing races with what the machine does about it.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { attachLoop } from '../../../src/linux/block/loop.ts'
import { allocate } from '../../../src/linux/fs/files.ts'
import { mount, umount } from '../../../src/linux/fs/mount.ts'
import { testInstallation } from '../installation.ts'
import { dist, talosctl } from '../machine.ts'
import { administratorFlags } from '../one-node.ts'
import { makeVariant } from '../variants.ts'
import { partitionIn } from './partition.ts'

const minutes = 60_000
const mebibyte = 1 << 20
/** What is left free: less than a quarter of the reserve. */
const left = 8 * mebibyte
const on = testInstallation('full-disk')

/** Fills EPHEMERAL of the machine, which is off, with a user volume. */
async function fill(): Promise<void> {
  const { offset, size } = await partitionIn(on.path('disk.img'), 'EPHEMERAL')
  const loop = attachLoop(on.path('disk.img'), { offset, sizeLimit: size })
  try {
    const target = on.path('ephemeral')
    mkdirSync(target, { recursive: true })
    mount({ source: loop.device, target, type: 'xfs' })
    try {
      mkdirSync(join(target, 'mnt/hoard'), { recursive: true })
      const { bavail, bsize } = statfsSync(target)
      allocate(join(target, 'mnt/hoard/filler'), bavail * bsize - left)
    } finally {
      umount(target)
    }
  } finally {
    loop.release()
  }
}

/** What an administrator's call prints; it is repeated while it fails. */
const answer = (call: readonly string[], what: RegExp) => on.machine.outputs(() => on.admin(...call), what, 15 * minutes)

test.skipIf(on.done('filled'))(
  'it keeps a reserve while there is space, and gives it up when it starts with a full disk',
  async () => {
    await answer(['list', '--long', '/var/system'], /67108864.*reserve/)
    await on.machine.unplug()
    await fill()
    on.machine.forget()
    await on.powerOn()
    await on.machine.shows(/EPHEMERAL is full, its reserve is given up/, 30 * minutes)
    on.remember('filled')
  },
  60 * minutes,
)

test(
  'its API and its logs answer, and explain states that it is full and by whom',
  async () => {
    expect(await answer(['services'], /kubelet/)).toMatch(/apid\s+Running\s+OK/)
    await answer(['logs', 'kubelet', '--tail', '3'], /\S/)
    await answer(['logs', 'apid', '--tail', '3'], /\S/)
    await answer(['dmesg'], /reserve is given up/)
    await answer(['explain'], /\/var.*user volumes in folders \(\d{4} MiB\)/s)
  },
  60 * minutes,
)

test(
  'it takes an upgrade, which is kept in memory until it is written',
  async () => {
    await answer(['services'], /kubelet\s+Running/)
    const archive = await makeVariant(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-installer-amd64.tar'), 'good', 'amd64')
    const order = [...administratorFlags(on.path(''), on.machine.port), 'upgrade', '--image', archive, '--timeout', '60m']
    const upgraded = await talosctl(order, {}, 70 * minutes)
    expect(upgraded.stderr).toContain('marked good')
    expect(upgraded.code).toBe(0)
    expect(await answer(['version'], /-good/)).toContain('Server:')
  },
  90 * minutes,
)
