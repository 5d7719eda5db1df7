import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { findBootPolicy } from '../../../../src/os/block/encryption/tpm/boot-policy.ts'
import { Meta } from '../../../../src/os/block/meta/meta.ts'
import { DiscoveredVolume } from '../../../../src/os/block/resources/discovered-volume.ts'
import { Disk } from '../../../../src/os/block/resources/disk.ts'
import { SystemDisk } from '../../../../src/os/block/resources/system-disk.ts'
import { VolumeStatus } from '../../../../src/os/block/resources/volume-status.ts'
import { releaseMethods } from '../../../../src/os/lifecycle/api/release.ts'
import { installOn } from '../../../../src/os/lifecycle/install/install-system.ts'
import { floorOf } from '../../../../src/os/lifecycle/release/floor.ts'
import { folderFiles } from '../../../../src/os/lifecycle/release/installer-image.ts'
import { openRelease } from '../../../../src/os/lifecycle/release/release.ts'
import { Uploads } from '../../../../src/os/lifecycle/release/uploads.ts'
import { withBootLoader } from '../../../../src/os/lifecycle/slots/boot-disk.ts'
import { SystemChanges } from '../../../../src/os/lifecycle/system-changes.ts'
import { failuresOf, trialOf } from '../../../../src/os/lifecycle/upgrade/records.ts'
import { watchTrial } from '../../../../src/os/lifecycle/upgrade/trial.ts'
import { beginRollback, examine, writeUpgrade } from '../../../../src/os/lifecycle/upgrade/upgrade.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'
import type { Role } from '../../../../src/wire/x509/roles.ts'
import { unfilled } from '../../../interop/always-filled.ts'
import { imageOf, newPcrKey, policyFiles } from '../../../support/measured-image.ts'
import { SparseDisk } from '../../../support/sparse-disk.ts'
import { blockDevices } from '../install/block-devices.ts'
import { installerLayout, releaseFiles, signingKey, tarOf, writeTree } from '../release/installer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-upgrading-'))
afterAll(() => rmSync(folder, { recursive: true }))
const key = signingKey()
const size = 8 * 2 ** 30
const never = new AbortController().signal
const options = { force: false, trusted: true, signal: never, report: () => {} }
const up = ['machined', 'apid', 'containerd', 'udevd']

/** Paths of the machine below a folder of its own. */
function filesBelow(root: string, commandLine: () => string, uefi: boolean) {
  const at = (path: string) => (path.startsWith('/') ? join(root, path) : path)
  return {
    ...files,
    exists: (path: string) => (path === '/sys/firmware/efi' ? uefi : files.exists(at(path))),
    readTextIfThere: (path: string) => (path === '/proc/cmdline' ? commandLine() : files.readTextIfThere(at(path))),
    lstatIfThere: (path: string) => files.lstatIfThere(at(path)),
    mkdirAll: (path: string, options?: Parameters<typeof files.mkdirAll>[1]) => files.mkdirAll(at(path), options),
    list: (path: string) => files.list(at(path)),
    removeFile: (path: string) => files.removeFile(at(path)),
    move: (from: string, to: string) => files.move(at(from), at(to)),
    openRead: (path: string, range?: Parameters<typeof files.openRead>[1]) => files.openRead(at(path), range),
    openWrite: (path: string, how?: Parameters<typeof files.openWrite>[1]) => files.openWrite(at(path), how),
    writeInto: () => {},
  }
}

/** A machine that v1.13.0 was installed on, as far as upgrades go; `start` is what its boot loader would start next. */
async function installed(uefi: boolean) {
  const root = mkdtempSync(join(folder, 'machine-'))
  mkdirSync(join(root, 'run/ichor'), { recursive: true })
  await Bun.write(join(root, 'run/ichor/key.pub'), key.publicKey)
  writeTree(join(root, 'medium'), releaseFiles('v1.13.0', key))
  const disk = new SparseDisk(size, 512)
  const block = blockDevices('/dev/vda', disk)
  const store = new Store()
  const spec = { dev_path: '/dev/vda', size, pretty_size: '8 GiB', io_size: 512, sector_size: 512, readonly: false, cdrom: false }
  store.put(Disk, 'vda', spec)
  let running = 'a'
  const kernel = { mode: 'metal', block, files: filesBelow(root, () => `quiet ichor.slot=${running}`, uefi) }
  const supervisor = {
    list: () => up.map((id) => ({ id, state: 'Running' })),
    get: () => undefined,
    isUp: (id: string) => up.includes(id),
    subscribe: () => () => {},
  }
  const meta = new Meta({ kernel: kernel as never, store, log: silent })
  const service = (id: string) => ({ id })
  const version = { arch: 'amd64', tag: 'v1.13.0' }
  const parts = { clock: systemClock, kernel, store, supervisor, meta, service, version, log: silent, systemChanges: new SystemChanges() }
  const medium = await openRelease(folderFiles({ files }, join(root, 'medium')), key.publicKey, 'amd64')
  await installOn(parts as never, { disk: '/dev/vda' }, medium, { signal: never, report: () => {} })
  store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
  store.put(NodeAddress, 'current', { addresses: ['10.0.2.15/24'], sortAlgorithm: 'v1' })
  const machine = parts as unknown as Parameters<typeof writeUpgrade>[0]
  return {
    disk,
    store,
    machine,
    /** Uploads a release, and returns the name by which it is upgraded to. */
    upload(release: Map<string, Buffer>): Promise<string> {
      const archive = tarOf(installerLayout(release))
      const pieces = async function* () {
        yield { data: archive, sha256: '' }
      }
      return new Uploads(parts.kernel as never).take(pieces(), { onDisk: true })
    },
    /** The replies to a caller of the API with this role. */
    call(path: string, request: object, role: Role) {
      const { handle } = releaseMethods(machine as never).find((method) => method.path === path)!
      return Array.fromAsync(handle(request as never, { roles: new Set([role]), signal: never } as never) as AsyncIterable<object>)
    },
    /** The steps of an administrator's upgrade before the reboot. */
    async upgrade(release: Map<string, Buffer>, { force = false, trusted = true } = {}) {
      const written = await writeUpgrade(machine, await this.upload(release), { ...options, force, trusted })
      await written.begin()
      return written.slot
    },
    state: () => withBootLoader(machine, (loader) => loader.state()),
    async start() {
      running = (await this.state()).next ?? ''
      return running
    },
    watch: () => watchTrial(parts as never, never, 10),
  }
}

describe.each([
  ['systemd-boot', true],
  ['grub', false],
] as const)('%s', (_, uefi) => {
  test('a release is uploaded, written, tried, marked good, and rolled back', async () => {
    const here = await installed(uefi)
    expect(await here.upgrade(releaseFiles('v1.13.1', key))).toBe('b')
    expect(trialOf(here.machine)).toMatchObject({ slot: 'b', version: 'v1.13.1', services: up, reachable: true })
    expect(await here.start()).toBe('b')
    expect(await here.watch()).toBe('good')
    expect(await here.state()).toMatchObject({ good: 'b', next: 'b', slots: { a: { version: 'v1.13.0' }, b: { version: 'v1.13.1' } } })
    expect(trialOf(here.machine)).toBeUndefined()

    expect(await beginRollback(here.machine)).toEqual({ slot: 'a', version: 'v1.13.0' })
    expect(await here.start()).toBe('a')
    expect(await here.watch()).toBe('good')
    expect(await here.state()).toMatchObject({ good: 'a', next: 'a' })

    expect(await here.upgrade(releaseFiles('v1.13.2', key))).toBe('b')
    expect(await here.start()).toBe('b')
    expect(await here.watch()).toBe('good')
    expect(await here.state()).toMatchObject({ good: 'b', slots: { a: { version: 'v1.13.0' }, b: { version: 'v1.13.2' } } })
  })

  test('a release that does not come up is rolled back, recorded, and refused unless forced', async () => {
    const here = await installed(uefi)
    const bad = releaseFiles('v1.13.1', key)
    await here.upgrade(bad)
    // The boot loader has used its starts up, and the machine is back: its slot runs, the trial stands.
    expect(await here.watch()).toBe('none')
    expect(await here.state()).toMatchObject({ good: 'a', next: 'a' })
    expect((await here.state()).trial).toBeUndefined()
    expect(failuresOf(here.machine)).toMatchObject([{ version: 'v1.13.1' }])
    await expect(here.upgrade(bad)).rejects.toThrow(/it failed on this node at .*nothing was changed/)
    await expect(beginRollback(here.machine)).rejects.toThrow(/slot B holds/)
    expect(await here.upgrade(bad, { force: true })).toBe('b')
    await here.start()
    expect(await here.watch()).toBe('good')
    expect(failuresOf(here.machine)).toEqual([])
  })

  test('an untrusted or modified release changes nothing', async () => {
    const here = await installed(uefi)
    const before = await here.state()
    await expect(here.upgrade(releaseFiles('v1.13.1', signingKey()))).rejects.toThrow('nothing was changed')
    const changed = releaseFiles('v1.13.1', key)
    changed.set('root.sqsh', Buffer.alloc(5000, 'x'))
    await expect(here.upgrade(changed)).rejects.toThrow('"root.sqsh" is damaged; nothing was changed')
    expect(await here.state()).toEqual(before)
    expect(trialOf(here.machine)).toBeUndefined()
    await expect(examine(here.machine, `upload:${'0'.repeat(64)}`, options)).rejects.toThrow('upload it again')
  })

  test("a release older than the newest proven one requires an administrator's force", async () => {
    const here = await installed(uefi)
    await here.upgrade(releaseFiles('v1.13.2', key))
    expect(floorOf(here.machine)).toBeUndefined()
    await here.start()
    expect(await here.watch()).toBe('good')
    expect(floorOf(here.machine)).toBe('v1.13.2')

    const older = releaseFiles('v1.13.1', key)
    const refusal = 'release: v1.13.1 is older than v1.13.2, which was proven on this node'
    await expect(here.upgrade(older)).rejects.toThrow(refusal)
    await expect(here.upgrade(older, { force: true, trusted: false })).rejects.toThrow(refusal)
    expect(await here.upgrade(older, { force: true })).toBe('a')
    await here.start()
    expect(await here.watch()).toBe('good')
    expect(floorOf(here.machine)).toBe('v1.13.2')
  })

  test('a caller without a certificate cannot install a release older than the running one', async () => {
    const here = await installed(uefi)
    await expect(here.upgrade(releaseFiles('v1.12.9', key), { force: true, trusted: false })).rejects.toThrow(
      'v1.12.9 is older than v1.13.0, the running release',
    )
    expect(await here.upgrade(releaseFiles('v1.12.9', key))).toBe('b')
  })

  test('a node with encrypted volumes takes no release that does not declare to open them, neither forwards nor back', async () => {
    const here = await installed(uefi)
    await here.upgrade(releaseFiles('v1.13.1', key, { encryption: ['luks2'] }))
    await here.start()
    expect(await here.watch()).toBe('good')
    here.store.put(VolumeStatus, 'EPHEMERAL', { phase: 'ready', type: 'partition', encryptionProvider: 'luks2' })
    const why = 'it does not declare that it opens encrypted volumes, and EPHEMERAL is encrypted'
    await expect(beginRollback(here.machine)).rejects.toThrow(`slot A holds v1.13.0: ${why}`)
    await expect(here.upgrade(releaseFiles('v1.13.2', key))).rejects.toThrow(`encryption: v1.13.2: ${why}`)
    expect([trialOf(here.machine), (await here.state()).next]).toEqual([undefined, 'b'])

    expect(await here.upgrade(releaseFiles('v1.13.2', key, { encryption: ['luks2'] }))).toBe('a')
    await here.start()
    expect(await here.watch()).toBe('good')
    expect(await beginRollback(here.machine)).toEqual({ slot: 'b', version: 'v1.13.1' })
  })

  test('a node whose TPM alone opens a volume takes no release of another PCR key', async () => {
    const here = await installed(uefi)
    const image = policyFiles(imageOf(newPcrKey()))
    const { files } = here.machine.kernel
    const readTextIfThere = (path: string) => image[path] ?? files.readTextIfThere(path)
    Object.assign(here.machine.kernel, { files: { ...files, readTextIfThere } })
    const own = `pcr${findBootPolicy({ readTextIfThere })?.fingerprint.slice(0, 13)}`
    const status = (...configuredEncryptionKeys: string[]) =>
      here.store.put(VolumeStatus, 'STATE', { phase: 'ready', type: 'partition', encryptionProvider: 'luks2', configuredEncryptionKeys })
    status('tpm')
    const other = releaseFiles('v1.13.1', key, { encryption: ['luks2', 'pcr0123456789abc'] })
    await expect(here.upgrade(other)).rejects.toThrow('and only the TPM opens STATE: add another kind of key first')
    status('static', 'tpm')
    expect(await here.upgrade(other)).toBe('b')
    status('tpm')
    expect(await here.upgrade(releaseFiles('v1.13.2', key, { encryption: ['luks2', own] }))).toBe('b')
  })

  test('a volume that is locked counts as encrypted, and an administrator may force the release', async () => {
    const here = await installed(uefi)
    const [dev_path, size] = ['/dev/vda3', 1 << 20]
    here.store.put(VolumeStatus, 'STATE', { phase: 'failed', type: 'partition', location: dev_path })
    const found = { type: 'partition', device_path: '', offset: 0, size, pretty_size: '1 MiB', name: 'luks' }
    here.store.put(DiscoveredVolume, 'vda3', { dev_path, ...found })
    await expect(here.upgrade(releaseFiles('v1.13.1', key))).rejects.toThrow('and STATE is encrypted: use --force')
    expect(await here.upgrade(releaseFiles('v1.13.1', key), { force: true })).toBe('b')
    await here.start()
    // The release that opened the volumes until now is the one to return to.
    expect(await beginRollback(here.machine)).toEqual({ slot: 'a', version: 'v1.13.0' })
  })

  test('the methods of the API trust administrators alone', async () => {
    const here = await installed(uefi)
    const older = async () => ({ imageName: await here.upload(releaseFiles('v1.12.9', key)), force: true })
    const refusal = 'v1.12.9 is older than v1.13.0, the running release'
    await expect(here.call('ichor.v1.ReleaseService/Upgrade', await older(), 'os:reader')).rejects.toThrow(refusal)
    expect(trialOf(here.machine)).toBeUndefined()
    expect(JSON.stringify(await here.call('ichor.v1.ReleaseService/Plan', await older(), 'os:reader'))).toContain(refusal)
    expect(JSON.stringify(await here.call('ichor.v1.ReleaseService/Plan', await older(), 'os:admin'))).not.toContain(refusal)
    const field = 'machine.LifecycleService/Upgrade'
    const replies = await here.call(field, { source: await older() }, 'os:admin')
    expect([trialOf(here.machine)?.version, unfilled(field, replies)]).toEqual(['v1.12.9', []])
  })
})
