/** Installs the emulator where it is missing. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'

try {
  await prepareHost([
    { name: 'qemu-system-x86', why: 'runs machines under emulation', shown: '/usr/bin/qemu-system-x86_64' },
    { name: 'ovmf', why: 'is the UEFI of emulated machines', shown: '/usr/share/OVMF/OVMF_CODE_4M.fd' },
    {
      name: 'ipxe-qemu',
      why: 'is the boot loader in the network interfaces of emulated machines',
      shown: '/usr/lib/ipxe/qemu/pxe-virtio.rom',
    },
    { name: 'xorriso', why: 'makes and judges CDs', shown: '/usr/bin/xorriso' },
    { name: 'genisoimage', why: 'makes media with UDF', shown: '/usr/bin/genisoimage' },
    { name: 'cryptsetup-bin', why: 'judges encrypted volumes', shown: '/usr/sbin/cryptsetup' },
    { name: 'swtpm', why: 'is the TPM of emulated machines', shown: '/usr/bin/swtpm' },
    { name: 'tpm2-tools', why: 'judges event logs of the firmware', shown: '/usr/bin/tpm2_eventlog' },
    { name: 'nfs-ganesha-vfs', why: 'serves files to pods of emulated machines', shown: '/usr/lib/ganesha/libfsalvfs.so' },
    { name: 'busybox-static', why: 'is the shell of the machine that makes disks', shown: '/bin/busybox' },
    { name: 'lvm2', why: 'makes volume groups on disks', shown: '/usr/sbin/lvm' },
    { name: 'mdadm', why: 'makes arrays of disks', shown: '/usr/sbin/mdadm' },
    { name: 'qemu-utils', why: 'makes and judges disk images', shown: '/usr/bin/qemu-img' },
  ])
} catch (error) {
  failed(error)
}
