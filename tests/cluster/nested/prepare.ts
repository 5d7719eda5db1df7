/** Installs the container engine whose nodes a story starts, where it is missing. */
import { failed } from '../../../rootfs/build/failure.ts'
import { prepareHost } from '../../../rootfs/build/host.ts'

try {
  await prepareHost([
    { name: 'containerd', why: 'starts the image of the system', shown: '/usr/bin/ctr' },
    { name: 'runc', why: 'starts its containers', shown: '/usr/sbin/runc' },
  ])
} catch (error) {
  failed(error)
}
