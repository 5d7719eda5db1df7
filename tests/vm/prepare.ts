/** Installs the emulator where it is missing. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'

try {
  await prepareHost([{ name: 'qemu-system-x86', why: 'runs machines under emulation', shown: '/usr/bin/qemu-system-x86_64' }])
} catch (error) {
  failed(error)
}
