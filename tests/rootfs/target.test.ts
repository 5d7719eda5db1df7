/** What differs between the processors that the system is built for. */
import { expect, test } from 'bun:test'
import { addBase } from '../../rootfs/build/base.ts'
import { UsageError } from '../../rootfs/build/failure.ts'
import { kubernetesReleases } from '../../rootfs/build/kubernetes.ts'
import { debianPartsOf } from '../../rootfs/build/sbom-parts.ts'
import { libraryFolderOf, targetOf, targets } from '../../rootfs/build/target.ts'
import { debianParts } from '../../rootfs/debian/parts.ts'
import { imageOptions } from '../../rootfs/image/options.ts'
import { imagePlans, makeImages } from '../../rootfs/images.ts'
import { loaderFilesOf } from '../../src/os/lifecycle/slots/loader-renewal.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'

test('the machine that builds is the target unless another is named', () => {
  expect(targetOf()).toBe(targets.amd64)
  expect(targetOf('arm64')).toBe(targets.arm64)
  expect(() => targetOf('mips')).toThrow(UsageError)
  expect(imageOptions(['--arch', 'arm64'])?.target).toBe(targets.arm64)
  expect(imageOptions([])?.target).toBe(targets.amd64)
})

test('what is taken and pinned for one processor is not mistaken for the other', () => {
  const patterns = (arch: 'amd64' | 'arm64') => debianParts(targets[arch]).flatMap(({ files }) => files)
  expect(patterns('arm64').filter((each) => each.includes('x86_64'))).toEqual([])
  expect(patterns('arm64')).toContain(`${libraryFolderOf(targets.arm64)}/xtables/libxt_*.so`)
  expect(patterns('amd64')).toContain('/usr/lib/x86_64-linux-gnu/xtables/libxt_*.so')
  const [part] = debianPartsOf([{ name: 'kmod', version: '30', sha256: 'a'.repeat(64) }], targets.arm64)
  expect(part?.purl).toBe('pkg:deb/debian/kmod@30?arch=arm64')
})

test('a short name at the root leads somewhere', () => {
  for (const target of Object.values(targets)) {
    const tree = new Tree()
    addBase(tree, '1.0.0', target)
    expect(tree.get('/lib64') !== undefined).toBe(target.linker.startsWith('/lib64/'))
  }
})

test('images name their processor, and those of a release share their layers', async () => {
  const plans = imagePlans(kubernetesReleases[0], targets.arm64)
  const bottoms = new Set(plans.flatMap(({ layers }) => (layers.length > 1 ? layers.slice(0, 1) : [])))
  expect(bottoms.size).toBe(1)
  const tree = new Tree()
  tree.text('test', '/usr/libexec/ichor/pause', 'pause', 0o755)
  const { images } = await makeImages(tree, plans.slice(-1), () => [], 'arm64')
  expect(JSON.parse(images[0]?.config.text ?? '')).toMatchObject({ architecture: 'arm64', os: 'linux' })
})

test('the firmware of each processor has its own name for the boot loader', () => {
  expect(loaderFilesOf('amd64')).toEqual({ loader: '/EFI/BOOT/BOOTX64.EFI', trial: '/EFI/BOOT/TRIALX64.EFI' })
  expect(loaderFilesOf('arm64')).toEqual({ loader: '/EFI/BOOT/BOOTAA64.EFI', trial: '/EFI/BOOT/TRIALAA64.EFI' })
})
