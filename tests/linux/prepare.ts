/** Installs what the stories of disks take as judges, where it is missing. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'

try {
  await prepareHost([
    { name: 'gdisk', why: 'checks partition tables', shown: '/usr/sbin/sgdisk' },
    { name: 'dosfstools', why: 'makes FAT file systems', shown: '/usr/sbin/mkfs.vfat' },
    { name: 'e2fsprogs', why: 'makes ext4 file systems', shown: '/usr/sbin/mkfs.ext4' },
    { name: 'xfsprogs', why: 'makes and checks XFS', shown: '/usr/sbin/mkfs.xfs' },
    { name: 'squashfs-tools', why: 'makes SquashFS', shown: '/usr/bin/mksquashfs' },
    { name: 'xorriso', why: 'makes ISO 9660', shown: '/usr/bin/xorriso' },
    { name: 'btrfs-progs', why: 'makes btrfs', shown: '/usr/sbin/mkfs.btrfs' },
    { name: 'cryptsetup-bin', why: 'makes encrypted volumes', shown: '/usr/sbin/cryptsetup' },
    { name: 'swtpm', why: 'is a TPM', shown: '/usr/bin/swtpm' },
    { name: 'tpm2-tools', why: 'seals and reads PCRs', shown: '/usr/bin/tpm2_unseal' },
    { name: 'lvm2', why: 'makes volumes of LVM', shown: '/usr/sbin/pvcreate' },
    { name: 'mdadm', why: 'makes arrays of disks', shown: '/usr/sbin/mdadm' },
  ])
} catch (error) {
  failed(error)
}
