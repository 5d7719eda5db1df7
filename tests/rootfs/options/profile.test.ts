import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../../../rootfs/build/failure.ts'
import { imageOptions } from '../../../rootfs/image/options.ts'
import { profileArguments } from '../../../rootfs/image/profile.ts'
import { release } from '../../../src/release.ts'

const argsOf = (text: string) => profileArguments(Buffer.from(text)).args.join(' ')
const folder = mkdtempSync(join(tmpdir(), 'ichor-profile-test-'))

test.each([
  ['baseProfileName: iso', '--platform metal --only iso'],
  ['baseProfileName: metal', '--platform metal --only disk --disk-formats raw'],
  ['baseProfileName: metal-uki', '--platform metal --only uki'],
  ['baseProfileName: azure', '--platform azure --only disk --disk-formats vhd'],
  ['baseProfileName: gcp\noutput: {outFormat: .tar.gz}', '--platform gcp --only disk --disk-formats gcp'],
  [
    '{arch: amd64, platform: nocloud, output: {kind: image, imageOptions: {diskFormat: qcow2, bootloader: grub}}}',
    '--arch amd64 --platform nocloud --only disk --disk-firmware bios --disk-formats qcow2',
  ],
  ['{output: {kind: image, outFormat: .tar.gz}}', '--platform metal --only disk --disk-formats gcp'],
  ['{output: {kind: iso, isoOptions: {sdBootEnrollKeys: force}}}', '--platform metal --only iso --sd-boot-enroll-keys force'],
  [
    '{output: {kind: cmdline}, customization: {extraKernelArgs: [a, -panic]}}',
    '--platform metal --only pxe --extra-kernel-arg a --extra-kernel-arg -panic',
  ],
  ['output: {kind: uki}\ncustomization: {metaContents: [{key: 10, value: foo}]}', '--platform metal --only uki --meta 0xa=foo'],
  [
    'output: {kind: installer}\ninput: {systemExtensions: [{imageRef: a.b/c:1}, {tarballPath: x.tar}, {ociPath: layout}]}',
    '--platform metal --only installer --system-extension-image a.b/c:1 --system-extension-image x.tar --system-extension-image layout',
  ],
  [
    'baseProfileName: secureboot-iso\ninput: {secureboot: {secureBootSigner: {keyPath: k, certPath: c}, pcrSigner: {keyPath: p}}}',
    '--platform metal --only iso --secure-boot-key k --secure-boot-cert c --pcr-key p',
  ],
])('%s is %s', (text, args) => {
  expect(argsOf(text)).toBe(args)
})

test.each([
  ['', 'the profile is empty'],
  ['kind: iso', 'unknown key "kind"'],
  ['{}', 'output.kind: is required, or a baseProfileName that has one'],
  ['output: {kind: floppy}', 'output.kind: "floppy" is not "iso"'],
  ['{baseProfileName: iso, name: x}', 'name: files have the names of'],
  ['{baseProfileName: iso, version: v1.2.3}', `version: these sources make ${release.tag}`],
  ['{baseProfileName: iso, arch: arm64, overlay: {name: rpi_generic}}', 'overlay: not part of iso: boards start from disks'],
  ['{baseProfileName: metal, arch: arm64, overlay: {name: rpi_generic}}', 'overlay.image: is required'],
  [
    '{baseProfileName: metal, arch: arm64, overlay: {name: rpi_generic, image: {imageRef: a/b}, options: {configTxt: 1}}}',
    'overlay.options.configTxt: must be a text',
  ],
  ['{baseProfileName: metal, input: {kernel: {path: x}}}', 'input.kernel: it is built'],
  ['{baseProfileName: installer, input: {imageCache: {imageRef: x}}}', 'input.imageCache: not part of installer'],
  ['{baseProfileName: iso, input: {imageCache: {}}}', 'input.imageCache: needs one of imageRef, tarballPath and ociPath'],
  ['{baseProfileName: iso, input: {systemExtensions: [{}]}}', 'input.systemExtensions[0]: needs one of'],
  [
    '{baseProfileName: iso, input: {systemExtensions: [{imageRef: a, forceInsecure: true}]}}',
    'forceInsecure: registries are reached by HTTPS',
  ],
  [
    '{baseProfileName: secureboot-iso, input: {secureboot: {secureBootSigner: {azureVaultURL: x}}}}',
    'secureBootSigner.azureVaultURL: keys are files',
  ],
  [
    '{baseProfileName: secureboot-iso, input: {secureboot: {platformKeyPath: x}}}',
    'input.secureboot.platformKeyPath: what machines enroll',
  ],
  ['{baseProfileName: iso, input: {secureboot: {platformKeyPath: x}}}', 'input.secureboot: needs "secureboot: true"'],
  ['{baseProfileName: installer, customization: {metaContents: [{key: 1}]}}', 'customization.metaContents: not part of installer'],
  ['{output: {kind: kernel}, customization: {extraKernelArgs: [a]}}', 'customization.extraKernelArgs: not part of kernel'],
  ['{output: {kind: initramfs}, secureboot: true}', 'secureboot: not part of initramfs'],
  ['{baseProfileName: iso, output: {imageOptions: {}}}', 'output.imageOptions: not part of iso'],
  ['{baseProfileName: iso, output: {outFormat: .xz}}', 'output.outFormat: files are not compressed'],
  ['{baseProfileName: metal, output: {outFormat: .zst}}', 'output.outFormat: ".zst": disks are not compressed'],
  ['{baseProfileName: metal, output: {imageOptions: {diskSize: 1GiB}}}', 'output.imageOptions.diskSize: volumes are created'],
  ['{baseProfileName: metal, output: {imageOptions: {diskFormatOptions: a}}}', 'diskFormatOptions: a format has no options'],
  ['{baseProfileName: metal, output: {imageOptions: {bootloader: dual-boot}}}', 'output.imageOptions.bootloader: "dual-boot"'],
  ['{baseProfileName: iso, output: {isoOptions: {bootloader: grub}}}', 'output.isoOptions.bootloader: "grub": an ISO has both'],
])('%j is refused in one line', (text, reason) => {
  expect(() => argsOf(text)).toThrow(UsageError)
  expect(() => argsOf(text)).toThrow(reason)
})

test('a profile stands for arguments, beside those for where the files go and how they are made', () => {
  const path = join(folder, 'profile.yaml')
  writeFileSync(path, 'baseProfileName: iso\ncustomization: {extraKernelArgs: [-panic], embeddedMachineConfiguration: "machine: {}"}\n')
  const options = imageOptions(['--profile', path, '--fast'])
  expect(options).toMatchObject({ fast: true, platform: 'metal', extraKernelArgs: ['-panic'] })
  expect([...(options?.only ?? [])]).toEqual(['iso'])
  const embedded = options?.embedConfig ?? ''
  expect([readFileSync(embedded, 'utf8'), statSync(embedded).mode & 0o777]).toEqual(['machine: {}', 0o600])
  expect(() => imageOptions(['--profile', path, '--platform', 'aws'])).toThrow('--platform: give it in the profile')
  expect(() => imageOptions(['--profile', join(folder, 'none')])).toThrow('ENOENT')
  expect(() => imageOptions(['--profile', '-', '--check-reproducible'])).toThrow('reads a profile twice')
})
