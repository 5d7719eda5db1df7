import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeSwap } from '../../../src/os/block/controllers/swap.ts'
import { configUserDisks } from '../../../src/os/block/controllers/user-disks.ts'
import { configVolumes } from '../../../src/os/block/controllers/volume-config.ts'
import { configZswap, observeZswap } from '../../../src/os/block/controllers/zswap.ts'
import { diskCondition, expressionProblem } from '../../../src/os/block/documents/expression.ts'
import { SwapStatus } from '../../../src/os/block/resources/swap-status.ts'
import { UserDiskConfigStatus } from '../../../src/os/block/resources/user-disk-config-status.ts'
import { VolumeConfig } from '../../../src/os/block/resources/volume-config.ts'
import { VolumeMountRequest } from '../../../src/os/block/resources/volume-mount.ts'
import { ZswapStatus } from '../../../src/os/block/resources/zswap-status.ts'
import { provisioningOf } from '../../../src/os/block/volumes/declaration.ts'
import { mostOf } from '../../../src/os/block/volumes/provision.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { KernelParamSpec, KernelParamStatus } from '../../../src/os/runtime/resources/kernel-param.ts'
import { MetaKey, MetaLoad } from '../../../src/os/runtime/resources/meta.ts'

const mebibyte = 1 << 20
const document = (text: string) => `apiVersion: v1alpha1\n${text}`
const config = (machine: string, ...documents: string[]) =>
  [`version: v1alpha1\nmachine:\n  type: worker\n${machine}`, ...documents.map(document)].join('---\n')

const files = {
  readTextIfThere: (path: string) =>
    ({
      '/proc/swaps': 'Filename\tType\tSize\tUsed\tPriority\n/dev/sdb2 partition 1048576 512 -2\n',
      '/sys/kernel/debug/zswap/pool_total_size': '8192\n',
      '/sys/kernel/debug/zswap/stored_pages': '7\n',
    })[path],
}

async function settled(text?: string, prepare = (_: Store) => {}, values = new Map<number, string>()) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  prepare(store)
  if (text) store.put(MachineConfig, 'v1alpha1', text)
  runtime.register(configVolumes(values), configUserDisks, configZswap, observeSwap({ files }), observeZswap({ files }))
  runtime.start()
  await runtime.settled()
  runtime.stop()
  return store
}

const metaRead = (store: Store) => store.put(MetaLoad, 'meta-loaded', { done: true })

const ids = (store: Store) => store.list(VolumeConfig).map(({ metadata }) => metadata.id)

describe('the volumes of a machine', () => {
  test('without a configuration are only located', async () => {
    // Until META is read, it is not known how STATE is encrypted.
    expect(ids(await settled())).toEqual(['META'])
    const store = await settled(undefined, metaRead)
    expect(ids(store)).toEqual(['META', 'STATE'])
    expect(store.get(VolumeConfig, 'STATE')?.spec.encryption).toBeUndefined()
    expect(store.get(VolumeConfig, 'STATE')?.spec.provisioning.partitionSpec).toBeUndefined()
    // A partition that was wiped is none that a configuration could be on.
    expect(store.get(VolumeConfig, 'STATE')?.spec.locator.match).toContain('volume.name != ""')
  })

  test('include IMAGECACHE when the configuration wants images or a volume for them; only a document makes it', async () => {
    const of = async (...parts: Parameters<typeof config>) =>
      (await settled(config(...parts), metaRead)).get(VolumeConfig, 'IMAGECACHE')?.spec
    expect(await of('')).toBeUndefined()
    const enabled = '  features: { imageCache: { localEnabled: true } }\n'
    expect((await of(enabled))?.provisioning).toEqual({ wave: -1 })
    const made = await of(enabled, 'kind: VolumeConfig\nname: IMAGECACHE\n')
    expect(made?.provisioning).toMatchObject({
      ...{ diskSelector: { match: 'system_disk' }, filesystemSpec: { type: 'ext4', label: 'IMAGECACHE' } },
      partitionSpec: { minSize: 500 * mebibyte, maxSize: 1024 * mebibyte, grow: false },
    })
    const large = await of('', 'kind: VolumeConfig\nname: IMAGECACHE\nprovisioning: { minSize: 3GiB, diskSelector: { match: "true" } }\n')
    expect(large?.provisioning).toMatchObject({ diskSelector: { match: 'true' }, partitionSpec: { maxSize: 3072 * mebibyte } })
    expect(large?.locator).toEqual({ match: 'volume.partition_label == "IMAGECACHE"', diskMatch: 'true' })
  })

  test('are encrypted as their documents specify, else as the older section does; before there is either, as META specifies', async () => {
    const older = '  systemDiskEncryption:\n    state: { provider: luks2, keys: [{ slot: 1, nodeID: {} }] }\n'
    const document =
      'kind: VolumeConfig\nname: EPHEMERAL\nencryption: { provider: luks2, cipher: aes-xts-plain64, keySize: 256, keys: [{ slot: 0, static: { passphrase: x }, lockToState: true }] }\n'
    const of = (store: Store, id: string) => store.get(VolumeConfig, id)?.spec.encryption
    const configured = await settled(
      config(older, document),
      metaRead,
      new Map([[9, '{"EncryptionProvider":"luks2","EncryptionKeys":[]}']]),
    )
    expect(of(configured, 'STATE')).toEqual({ provider: 'luks2', keys: [{ slot: 1, type: 'nodeID' }] })
    expect(of(configured, 'EPHEMERAL')).toEqual({
      provider: 'luks2',
      keys: [{ slot: 0, type: 'static', lockToState: true, staticPassphrase: 'x' }],
      cipher: 'aes-xts-plain64',
      keySize: 256,
    })
    const record = JSON.stringify({ EncryptionProvider: 'luks2', EncryptionKeys: [{ KeySlot: 2, KeyStatic: { KeyData: 'secret' } }] })
    const withRecord = (text: string) => (store: Store) => {
      metaRead(store)
      store.put(MetaKey, '0x09', { value: 'not the passphrase' })
      return text
    }
    const recorded = await settled(undefined, withRecord(record), new Map([[9, record]]))
    expect(of(recorded, 'STATE')).toEqual({ provider: 'luks2', keys: [{ slot: 2, type: 'static', staticPassphrase: 'secret' }] })
    for (const text of ['null', 'damaged'])
      expect(of(await settled(undefined, withRecord(text), new Map([[9, text]])), 'STATE')).toBeUndefined()
  })

  test('are STATE of 100 MiB, EPHEMERAL with the remaining space, directories and overlays on it', async () => {
    const store = await settled(config(''))
    expect(store.get(VolumeConfig, 'STATE')?.spec.provisioning).toMatchObject({
      diskSelector: { match: 'system_disk' },
      partitionSpec: { minSize: 100 * mebibyte, maxSize: 100 * mebibyte, grow: false, label: 'STATE' },
      filesystemSpec: { type: 'xfs', label: 'STATE' },
    })
    expect(store.get(VolumeConfig, 'EPHEMERAL')?.spec.provisioning.partitionSpec).toMatchObject({
      minSize: 2048 * mebibyte,
      grow: true,
      typeUUID: '0FC63DAF-8483-4772-8E79-3D69D8477DE4',
    })
    expect(ids(store)).toEqual(
      expect.arrayContaining(['/var/lib', 'ETCD', '/var/run', '/etc/cni', '/etc/kubernetes', '/opt', '/usr/libexec/kubernetes']),
    )
    expect(store.get(VolumeMountRequest, '/etc/cni')?.spec.requester).toBe('block.VolumeConfigController')
    expect(store.get(VolumeConfig, 'META')?.metadata.labels).toEqual({ 'talos.dev/system-volume': '' })
  })

  test('may have EPHEMERAL elsewhere and smaller', async () => {
    const text =
      'kind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  diskSelector:\n    match: disk.transport == "nvme"\n  maxSize: 50GiB\n  grow: false\n'
    const { provisioning, locator } = (await settled(config('', text))).get(VolumeConfig, 'EPHEMERAL')!.spec
    expect(provisioning.diskSelector).toEqual({ match: 'disk.transport == "nvme"' })
    expect(provisioning.partitionSpec).toMatchObject({ minSize: 2048 * mebibyte, maxSize: 50 * 1024 * mebibyte, grow: false })
    expect(locator).toEqual({ match: 'volume.partition_label == "EPHEMERAL"', diskMatch: 'disk.transport == "nvme"' })
  })

  test('for workloads have a letter in front, and mounted ones are requested', async () => {
    const on = 'provisioning:\n  diskSelector:\n    match: "!system_disk"\n  maxSize: 10GiB\n'
    const store = await settled(
      config(
        '',
        `kind: UserVolumeConfig\nname: data\n${on}filesystem:\n  projectQuotaSupport: true\nmount:\n  disableAccessTime: true\n`,
        `kind: RawVolumeConfig\nname: ceph\n${on}`,
        `kind: SwapVolumeConfig\nname: spare\n${on}`,
        'kind: ExistingVolumeConfig\nname: old\ndiscovery:\n  volumeSelector:\n    match: volume.label == "old"\nmount:\n  readOnly: true\n',
        'kind: ExternalVolumeConfig\nname: share\nfilesystemType: virtiofs\nmount:\n  virtiofs:\n    tag: work\n',
        'kind: UserVolumeConfig\nname: whole\nvolumeType: disk\nprovisioning:\n  diskSelector:\n    match: disk.serial == "S1"\nfilesystem:\n  type: ext4\n',
      ),
    )
    expect(ids(store).filter((id) => /^[urse x]-/.test(id))).toEqual(['e-old', 'r-ceph', 's-spare', 'u-data', 'u-whole', 'x-share'])
    expect(store.get(VolumeConfig, 'u-data')?.spec).toMatchObject({
      parentId: '/var/mnt',
      mount: { targetPath: 'data', projectQuotaSupport: true },
      locator: { match: 'volume.partition_label == "u-data"' },
      provisioning: { partitionSpec: { minSize: 100 * mebibyte, maxSize: 10240 * mebibyte } },
    })
    expect(store.get(VolumeMountRequest, 'u-data')?.spec).toMatchObject({ disableAccessTime: true, secure: true, readOnly: false })
    expect(store.get(VolumeMountRequest, 'e-old')?.spec.readOnly).toBe(true)
    expect(store.get(VolumeMountRequest, 'r-ceph')).toBeUndefined()
    expect(store.get(VolumeConfig, 's-spare')?.spec.provisioning.partitionSpec?.typeUUID).toBe('0657FD6D-A4AB-43C4-84E5-0933C84B4F4F')
    expect(store.get(VolumeConfig, 'u-whole')?.spec).toMatchObject({
      type: 'disk',
      locator: { diskMatch: 'disk.serial == "S1"' },
      provisioning: { filesystemSpec: { type: 'ext4' } },
    })
  })

  test('in the older form are partitions of a disk by number', async () => {
    const store = await settled(
      config(
        '  disks:\n    - device: /dev/sdb\n      partitions:\n        - mountpoint: /var/mnt/extra\n          size: 10GB\n        - mountpoint: /srv\n',
      ),
    )
    expect(store.get(VolumeConfig, '/dev/sdb-1')?.spec).toMatchObject({
      parentId: 'EPHEMERAL',
      locator: { match: 'volume.partition_index == 1u' },
      provisioning: { partitionSpec: { minSize: 10e9, maxSize: 10e9 } },
    })
    expect(store.get(VolumeConfig, '/dev/sdb-2')?.spec.parentId).toBeUndefined()
    expect(store.get(UserDiskConfigStatus, 'user-disks')?.spec).toEqual({ ready: false, tornDown: false })
  })
})

describe('sizes', () => {
  const usual = { minSize: 100, grow: false }
  const most = (maxSize: string, disk: number) =>
    mostOf({ relativeMaxSize: 0, negativeMaxSize: false, ...provisioningOf({ maxSize }, usual) }, disk)

  test('are bytes, percent of the disk, or space to leave free', () => {
    expect(most('1000', 5000)).toBe(1000)
    expect(most('50%', 5000)).toBe(2500)
    expect(most('-1000', 5000)).toBe(4000)
    expect(most('-10%', 5000)).toBe(4500)
    expect(mostOf({ relativeMaxSize: 0, negativeMaxSize: false, ...provisioningOf({}, usual) }, 5000)).toBe(Number.MAX_SAFE_INTEGER)
  })

  test('have a minimum no larger than the maximum', () => {
    expect(provisioningOf({ maxSize: '64' }, usual).minSize).toBe(64)
    expect(provisioningOf({ minSize: '32', maxSize: '64' }, usual).minSize).toBe(32)
    expect(provisioningOf({ maxSize: '-64' }, usual).minSize).toBe(100)
  })
})

describe('expressions', () => {
  const disk = {
    dev_path: '/dev/nvme0n1',
    size: 20 * 1024 ** 3,
    pretty_size: '',
    io_size: 0,
    sector_size: 512,
    readonly: false,
    cdrom: false,
    transport: 'nvme',
  }

  test('select disks by their properties', () => {
    for (const text of [
      'disk.transport == "nvme" && !system_disk',
      'disk.size > 10u * GiB && disk.size < 1u * TB',
      'disk.model == "" && !disk.rotational',
    ])
      expect([text, diskCondition(text)({ disk, systemDisk: false })]).toEqual([text, true])
  })

  test('in the documentation are accepted', async () => {
    const manual = await Bun.file(join(import.meta.dir, '../../../docs/disks.md')).text()
    const [, examples = ''] = /## Disk selector expressions.*?```\n(.*?)```/s.exec(manual) ?? []
    const lines = examples.split('\n').filter((line) => line !== '')
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) expect([line, expressionProblem(line, 'disk')]).toEqual([line, undefined])
  })

  test('that are invalid fail validation', () => {
    const recorded = (text: string) =>
      ConfigContainer.parse(config('', text))
        .validate('metal')
        .errors.map(({ message }) => message)
    const raw = (match: string) =>
      recorded(`kind: RawVolumeConfig\nname: a\nprovisioning:\n  diskSelector:\n    match: ${JSON.stringify(match)}\n  minSize: 1GiB\n`)
    expect(raw('disk.sise > 5').join()).toContain('"disk.sise > 5" does not select a disk: character 6: no such key: sise')
    expect(raw('disk.size >').join()).toContain('does not select a disk')
    expect(raw('volume.name == "x"').join()).toContain('character 1: unknown variable: volume')
    expect(raw('"/dev/disk/by-id/x" in disk.symlinks || disk.symlinks[0] == "y"').join()).not.toContain('does not select')
    expect(
      recorded('kind: ExistingVolumeConfig\nname: a\ndiscovery:\n  volumeSelector:\n    match: volume.lable == "x"\n').join(),
    ).toContain('character 8: no such key: lable')
  })
})

test('swap areas are published with their usage, zswap once enabled', async () => {
  const store = await settled(config('', 'kind: ZswapConfig\nmaxPoolPercent: 30\nshrinkerEnabled: false\n'), (store) =>
    store.put(KernelParamStatus, 'sys.module.zswap.parameters.enabled', { current: 'Y', default: 'N', unsupported: false }),
  )
  expect(store.get(SwapStatus, '/dev/sdb2')?.spec).toEqual({
    device: '/dev/sdb2',
    type: 'partition',
    size: 1048576 * 1024,
    sizeHuman: '1.0 GiB',
    used: 524288,
    usedHuman: '512 KiB',
    priority: -2,
  })
  const set = (name: string) => store.get(KernelParamSpec, `sys.module.zswap.parameters.${name}`)?.spec.value
  expect([set('enabled'), set('max_pool_percent'), set('shrinker_enabled')]).toEqual(['Y', '30', 'N'])
  expect(store.get(ZswapStatus, 'zswap')?.spec).toMatchObject({
    totalSize: 8192,
    totalSizeHuman: '8.0 KiB',
    storedPages: 7,
    poolLimitHit: 0,
  })
})
