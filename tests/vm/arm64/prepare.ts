/** Installs what the stories of arm64 need where it is missing. */
import { failed } from '../../../rootfs/build/failure.ts'
import { crossPackagesOf, prepareHost } from '../../../rootfs/build/host.ts'
import { targets } from '../../../rootfs/build/target.ts'

try {
  await prepareHost([
    { name: 'qemu-system-arm', why: 'runs machines with arm64 under emulation', shown: '/usr/bin/qemu-system-aarch64' },
    { name: 'qemu-efi-aarch64', why: 'is the UEFI of emulated machines with arm64', shown: '/usr/share/AAVMF/AAVMF_CODE.fd' },
    { name: 'qemu-user', why: 'runs programs of arm64', shown: '/usr/bin/qemu-aarch64' },
    ...crossPackagesOf(targets.arm64),
  ])
} catch (error) {
  failed(error)
}
