/** Expressions that pick disks, volumes and links are refused, true, false or errors just where the field's own environments say so. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CelError } from '../../src/document/cel/error.ts'
import { diskCondition, volumeCondition } from '../../src/os/block/documents/expression.ts'
import { linkCondition } from '../../src/os/network/documents/link-expression.ts'
import { linkValues } from '../../src/os/network/link/values.ts'
import { buildClient, runClient } from './client.ts'

setDefaultTimeout(600_000)

const folder = mkdtempSync(join(tmpdir(), 'ichor-expressions-'))
afterAll(() => rmSync(folder, { recursive: true }))

const disk = {
  dev_path: '/dev/nvme0n1',
  size: 500_107_862_016,
  pretty_size: '500 GB',
  io_size: 512,
  sector_size: 512,
  readonly: false,
  cdrom: false,
  model: 'QEMU NVMe Ctrl',
  transport: 'nvme',
  symlinks: ['/dev/disk/by-id/nvme-x', '/dev/disk/by-path/pci-0000:00:1f.2-ata-1'],
}
const volume = {
  dev_path: '/dev/nvme0n1p1',
  device_path: '',
  type: 'partition',
  offset: 1_048_576,
  size: 104_857_600,
  pretty_size: '105 MB',
  name: 'xfs',
  partition_label: 'DATA',
  partition_index: 1,
}
const link = {
  index: 2,
  type: 'ether',
  linkIndex: 0,
  flags: 'UP,BROADCAST,RUNNING,MULTICAST,LOWER_UP',
  hardwareAddr: '00:1a:2b:3c:4d:5e',
  permanentAddr: '00:1a:2b:3c:4d:5e',
  broadcastAddr: 'ff:ff:ff:ff:ff:ff',
  mtu: 1500,
  queueDisc: 'mq',
  operationalState: 'up',
  kind: '',
  slaveKind: '',
  driver: 'virtio_net',
  linkState: true,
  port: 'Other',
  duplex: 'Full',
  altNames: ['enp0s4'],
  speedMbit: 10_000,
}

const expressions = {
  disk: [
    'disk.transport == "nvme" && !system_disk && disk.size > 100u * GiB',
    "disk.transport == 'scsi' && disk.size < 2u * TiB",
    "disk.serial.startsWith('deadbeef') && !disk.cdrom",
    "disk.serial.startsWith('deadbeef') && !cdrom",
    "'/dev/disk/by-path/pci-0000:00:1f.2-ata-1' in disk.symlinks",
    'disk.size > 10u * GB && disk.size <= 1u * TB',
    ...['kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'].map((unit) => `disk.size >= 1u * ${unit}`),
    'disk.size > 1u * KB',
    'disk.size > 10 * GB',
    'disk.size > 500000000000',
    'disk.size > 500000000000u',
    'disk.size == 500107862016',
    'disk.size > 1.5',
    'double(disk.size) / double(GB) > 500.1',
    'disk.size / GB == 500u',
    'disk.size % 512u == 0u',
    'disk.size * EiB > 0u',
    'disk.size - TB > 0u',
    'disk.size / 0u == 0u',
    '-disk.size < 0',
    'int(disk.size) - int(TB) < 0',
    'uint(disk.size) == disk.size && string(disk.size) == "500107862016"',
    '1.0 / 2.0 == 0.5',
    '7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1',
    'has(disk.model) && !has(disk.serial) && has(disk.size) && !has(disk.rotational) && !has(disk.secondary_disks)',
    'has(disk.nosuch)',
    'has(disk)',
    'disk.nosuch == ""',
    'disk.rotational || disk.model.contains("NVMe")',
    'disk.symlinks.exists(s, s.startsWith("/dev/disk/by-id/"))',
    'disk.symlinks.all(s, s.endsWith("x"))',
    'disk.symlinks.exists_one(s, s.contains("by-id"))',
    'disk.symlinks.filter(s, s.contains("by-id")).size() == 1',
    'disk.symlinks.map(s, size(s)) == [22, 40]',
    'disk.symlinks.map(s, s.contains("id"), size(s)) == [22]',
    'disk.symlinks[0] == "/dev/disk/by-id/nvme-x"',
    'disk.symlinks[5] == "x"',
    'disk.symlinks[5] == "x" || disk.transport == "nvme"',
    'disk.transport == "nvme" || disk.symlinks[5] == "x"',
    'disk.symlinks[5] == "x" && disk.transport == "sata"',
    'disk.symlinks[0u] == "x"',
    'disk.symlinks',
    'disk.model',
    'disk',
    'true',
    'null',
    'disk.model == null',
    'disk.model.matches("^QEMU\\\\s+NVMe")',
    "disk.model.matches(r'^QEMU\\s')",
    'matches(disk.model, "Ctrl$")',
    'disk.model.matches("(")',
    'disk.model.matches("(a)\\\\1")',
    'disk.model == r"a\\b"',
    'disk.model == "\\x51\\u0045MU NVMe Ctrl"',
    'disk.model + "x" == "QEMU NVMe Ctrlx"',
    'disk.model < "R" && disk.model >= "Q"',
    'disk.model.size() == 14 && size(disk.symlinks) == 2',
    'disk.model.lowerAscii() == "qemu nvme ctrl"',
    'disk.model.split(" ").size() == 3',
    'disk.model.trim() == ""',
    'glob("QEMU*Ctrl", disk.model)',
    'glob("QEMU?NVMe?Ctrl", disk.model)',
    'glob("/dev/*", disk.dev_path)',
    'glob("nvme*", disk.dev_path)',
    'glob("*", "")',
    'glob("a*b*c", "aXbXbYc") && !glob("a*b*c", "aXbXbY")',
    'disk.model in ["a", "QEMU NVMe Ctrl"]',
    'disk.size in [500107862016u]',
    'disk.size in [500107862016]',
    'disk.rotational ? false : disk.transport == "nvme"',
    'disk.rotational ? 1 : "a"',
    '{"nvme": 1, "sata": 2}[disk.transport] == 1',
    '{"sata": 2}[disk.transport] == 1',
    '"nvme" in {"nvme": true}',
    'disk["model"] == "x"',
    'system_disk == false',
    'volume.label == "x"',
    'type(disk.size) == uint',
    'disk.size == dyn(500107862016)',
    'dyn(disk.size) > 5',
    'dyn(true)',
    'disk.size >',
    'disk.size > 1u )',
    '(disk.size > 1u',
    '"unfinished',
    'disk.size = 1u',
    'disk.size > 1u and true',
    'disk.size > 0xFFu && 0x10 == 16 && 1e3 == 1000.0',
    'nosuch(disk)',
    'disk.nosuch()',
    'x.exists(y, true)',
    '[1, 2, 3].exists(x, x > 2) && [].size() == 0',
    '!(disk.size > 1u) || !!true',
    'disk.size > 1u // a comment',
    '[1, 2].exists(disk, disk == 1)',
    'true || 1 / 0 == 1',
    '1 / 0 == 1 || true',
    '1 / 0 == 1',
    '9223372036854775807 + 1 > 0',
    '18446744073709551615u + 1u > 0u',
    'int("12") == 12 && double("1.5") == 1.5 && bool("true") && uint("7") == 7u',
    'int("x") == 1',
    'string(1.5) == "1.5" && string(true) == "true" && string(b"ab") == "ab" && bytes("ab") == b"ab"',
  ],
  volume: [
    'volume.partition_label == "DATA" && disk.transport == "nvme"',
    'volume.partition_index == 1u',
    'volume.partition_index == 1',
    'volume.size > 100u * MB && volume.name == "xfs" && !has(volume.label)',
    'volume.lable == "x"',
    'volume.partition_uuid == "" && volume.offset == 1u * MiB',
    'glob("D*", volume.partition_label)',
    'volume.type == "partition"',
  ],
  link: [
    'link.driver == "virtio_net"',
    'mac(link.permanent_addr).startsWith("00:1a:2b")',
    'mac(link.permanent_addr) == "00:1a:2b:3c:4d:5e"',
    'mac("00:1a") == ""',
    'glob("00:1a:2b:*", mac(link.permanent_addr))',
    'link.permanent_addr == b"\\x00\\x1a\\x2b\\x3c\\x4d\\x5e"',
    'link.permanent_addr == "00:1a:2b:3c:4d:5e"',
    'link.mtu == 1500u && link.index == 2u',
    'link.mtu == 1500',
    'link.speed_megabits >= 10000',
    'link.speed_megabits >= 10000u',
    'link.type == 1 && link.operational_state == 6',
    'link.type == "ether"',
    'link.link_state && link.kind == "" && "enp0s4" in link.alt_names',
    'link.flags == 69699u',
    'has(link.driver) && !has(link.alias) && has(link.permanent_addr)',
    'link.mtu > 1u * KiB',
    'link.hardware_addr.size() == 6',
  ],
}

// What protocol buffers call these fields in JSON; addresses are base64 there.
const base64 = (mac: string) => Buffer.from(mac.replaceAll(':', ''), 'hex').toString('base64')
const wire = {
  disk,
  volume,
  link: {
    index: link.index,
    type: 1,
    flags: 69_699,
    hardware_addr: base64(link.hardwareAddr),
    permanent_addr: base64(link.permanentAddr),
    broadcast_addr: base64(link.broadcastAddr),
    mtu: link.mtu,
    queue_disc: link.queueDisc,
    operational_state: 6,
    driver: link.driver,
    link_state: true,
    speed_megabits: link.speedMbit,
    alt_names: link.altNames,
  },
}
const values = {
  disk: { disk: wire.disk, system_disk: false },
  volume: { disk: wire.disk, volume: wire.volume },
  link: { link: wire.link },
}
const conditions = {
  disk: (text: string) => {
    const condition = diskCondition(text)
    return () => condition({ disk, systemDisk: false })
  },
  volume: (text: string) => {
    const condition = volumeCondition(text)
    return () => condition({ disk, volume, systemDisk: false })
  },
  link: (text: string) => {
    const condition = linkCondition(text)
    return () => condition({ link: linkValues(link) })
  },
}

/** What differs on purpose, and why. */
const exceptions: Record<string, string> = {
  'disk.model.matches("(")': 'patterns in the text of an expression are refused with it, not where they are evaluated',
  'disk.model.matches("(a)\\\\1")': 'patterns in the text of an expression are refused with it, not where they are evaluated',
}

type About = keyof typeof expressions

function ours(about: About, text: string): string {
  const expectCelError = (error: unknown, what: string) => {
    if (error instanceof CelError) return what
    throw error
  }
  let condition: () => boolean
  try {
    condition = conditions[about](text)
  } catch (error) {
    return expectCelError(error, 'refused')
  }
  try {
    return String(condition())
  } catch (error) {
    return expectCelError(error, 'error')
  }
}

const questions = (Object.keys(expressions) as About[]).flatMap((environment) =>
  expressions[environment].map((expression) => ({ environment, expression, values: values[environment] })),
)

test.skipIf(Bun.which('go') === null)('expressions mean what they mean to the field', async () => {
  const file = join(folder, 'questions.json')
  await Bun.write(file, JSON.stringify(questions))
  const answers = (await runClient(await buildClient(), ['expressions', file])) as { refused?: string; result?: string }[]
  const differences = questions.flatMap(({ environment, expression }, index) => {
    const { refused, result = '' } = answers[index] ?? {}
    const [theirs, own] = [refused === undefined ? result : 'refused', ours(environment, expression)]
    return theirs === own ? [] : [{ environment, expression, theirs, own, refused }]
  })
  expect(differences.filter(({ expression }) => !exceptions[expression])).toEqual([])
  expect(differences.map(({ expression }) => expression).sort()).toEqual(Object.keys(exceptions).sort())
})
