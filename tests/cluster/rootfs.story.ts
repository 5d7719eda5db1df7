/** The root file system as the kernel sees it: mounted, looked through, and its programs started in it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { imageTablePath, layerFolder } from '../../rootfs/images.ts'
import { sbomPath } from '../../rootfs/sbom.ts'
import type { ImageTable } from '../../src/oci/image.ts'
import { layerSegments } from '../../src/oci/layer.ts'
import type { SpdxDocument } from '../../src/oci/spdx.ts'

const dist = join(import.meta.dir, '../../dist')
const folder = mkdtempSync(join(tmpdir(), 'ichor-rootfs-'))
const shipped = join(folder, 'shipped')
const forNodes = join(folder, 'nodes')

function command(...argv: string[]): { code: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } })
  return { code: exitCode, output: `${stdout}${stderr}` }
}

beforeAll(() => {
  for (const [image, place] of [
    ['rootfs.sqsh', shipped],
    ['rootfs.node.sqsh', forNodes],
  ] as const) {
    mkdirSync(place)
    expect(command('mount', '-t', 'squashfs', '-o', 'loop,ro', join(dist, image), place)).toEqual({ code: 0, output: '' })
  }
})
afterAll(() => {
  for (const place of [shipped, forNodes]) {
    command('umount', place)
    rmdirSync(place)
  }
  rmdirSync(folder)
})

/** Every path with what it is. */
function listing(root: string): string[] {
  return (readdirSync(root, { recursive: true }) as string[]).sort().map((path) => {
    const { mode, uid, gid, size, nlink } = lstatSync(join(root, path))
    const kind = mode & 0o170000
    // A directory's size is that of its listing, which depends on how inodes fell into blocks.
    const more = kind === 0o120000 ? ` -> ${readlinkSync(join(root, path))}` : kind === 0o100000 ? ` ${size} ${nlink}` : ''
    return `${mode.toString(8)} ${uid}:${gid} ${path}${more}`
  })
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

test('the shipped image is at most 105 MB', () => {
  expect(statSync(join(dist, 'rootfs.sqsh')).size).toBeLessThanOrEqual(105_000_000)
})

test('both images hold the same tree', () => {
  expect(listing(shipped)).toEqual(listing(forNodes))
  for (const file of ['usr/bin/runc', 'usr/libexec/cni/cni', 'usr/lib/x86_64-linux-gnu/libc.so.6', imageTablePath.slice(1)]) {
    expect(sha256(join(shipped, file))).toBe(sha256(join(forNodes, file)))
  }
})

test('there is no shell, no core utility and no remote access', () => {
  const names = new Set((readdirSync(forNodes, { recursive: true }) as string[]).map((path) => path.split('/').at(-1)))
  for (const name of [
    'sh',
    'bash',
    'dash',
    'busybox',
    'ls',
    'cat',
    'cp',
    'rm',
    'env',
    'su',
    'login',
    'sshd',
    'ssh',
    'nc',
    'perl',
    'python3',
    'apt',
    'dpkg',
  ]) {
    expect(names.has(name)).toBe(false)
  }
})

test.each([
  [['nft', '--version'], 'nftables v'],
  [['iptables', '--version'], '(nf_tables)'],
  [['ip6tables-save', '--version'], '(nf_tables)'],
  [['conntrack', '--version'], 'conntrack v'],
  [['mount', '--version'], 'util-linux'],
  [['losetup', '--version'], 'util-linux'],
  [['blkid', '--version'], 'util-linux'],
  [['mkfs.xfs', '-V'], 'mkfs.xfs version'],
  [['xfs_growfs', '-V'], 'xfs_growfs version'],
  [['mkfs.ext4', '-V'], 'mke2fs'],
  [['resize2fs'], 'resize2fs'],
  [['lsattr', '-V', '-d', '/'], 'lsattr'],
  [['modprobe', '--version'], 'kmod version'],
  [['udevadm', '--version'], ''],
  [['containerd', '--version'], '2.2.9'],
  [['containerd-shim-runc-v2', '-v'], 'Version:  2.2.9'],
  [['runc', '--version'], 'runc version 1.5.2'],
  [['kubelet', '--version'], 'Kubernetes v1.36.3'],
  [['kube-apiserver', '--version'], 'Kubernetes v1.36.3'],
  [['kube-controller-manager', '--version'], 'Kubernetes v1.36.3'],
  [['kube-scheduler', '--version'], 'Kubernetes v1.36.3'],
  [['kube-proxy', '--version'], 'Kubernetes v1.36.3'],
  [['etcd', '--version'], 'etcd Version: 3.6.16'],
  [['coredns', '-version'], 'CoreDNS-1.14.7'],
  [['flanneld', '--version'], 'v0.28.4'],
  [['/usr/libexec/cni/bridge'], 'CNI bridge plugin v1.9.1'],
] as [string[], string][])('%p runs in it', (argv, expected) => {
  expect(command('chroot', forNodes, ...argv).output).toContain(expected)
})

test('every layer is the tar of its digest, and its folder is the same files', () => {
  const { images }: ImageTable = JSON.parse(readFileSync(join(forNodes, imageTablePath), 'utf8'))
  expect(images.map(({ reference }) => reference)).toContain('registry.k8s.io/pause:3.10.1')
  const layers = new Map(images.flatMap((image) => image.layers.map((layer) => [layer.digest, layer])))
  for (const layer of layers.values()) {
    const hash = createHash('sha256')
    for (const segment of layerSegments(layer.entries))
      hash.update('bytes' in segment ? segment.bytes : readFileSync(join(forNodes, segment.file)))
    expect(`sha256:${hash.digest('hex')}`).toBe(layer.digest)
    const place = join(forNodes, layerFolder, layer.digest.slice('sha256:'.length))
    const there = (readdirSync(place, { recursive: true }) as string[]).sort()
    expect(there).toEqual(layer.entries.map(({ path }) => path).sort())
    for (const { path, source } of layer.entries)
      if (source) expect(statSync(join(place, path)).ino).toBe(statSync(join(forNodes, source)).ino)
  }
  for (const image of images) {
    expect(`sha256:${createHash('sha256').update(image.manifest).digest('hex')}`).toBe(image.digest)
    expect(`sha256:${createHash('sha256').update(image.config.text).digest('hex')}`).toBe(image.config.digest)
  }
})

test('the SBOM names the binaries by their hashes', () => {
  const { packages }: SpdxDocument = JSON.parse(readFileSync(join(forNodes, sbomPath), 'utf8'))
  const hashOf = (name: string) => packages.find((each) => each.name === name)?.checksums?.[0]?.checksumValue
  for (const name of ['kube', 'containerd', 'runc', 'ichor']) expect(hashOf(name)).toBe(sha256(join(forNodes, 'usr/bin', name)))
  expect(packages.find(({ name }) => name === 'nftables')?.versionInfo).toMatch(/^1\./)
})
