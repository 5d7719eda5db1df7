/** Installs the container engine of the stories where it is missing; nothing of it is started as a service. */
import { failed } from '../../../rootfs/build/failure.ts'
import { prepareHost } from '../../../rootfs/build/host.ts'

try {
  await prepareHost([
    { name: 'podman', why: 'runs nodes in the stories', shown: '/usr/bin/podman' },
    { name: 'runc', why: 'runs its containers', shown: '/usr/bin/runc' },
    { name: 'netavark', why: 'makes its networks', shown: '/usr/lib/podman/netavark' },
    { name: 'iptables', why: 'publishes ports of its containers', shown: '/usr/sbin/iptables' },
  ])
} catch (error) {
  failed(error)
}
