/**
 * A minimal system with the same kernel: busybox as the first process, which loads the network driver, requests
 * an address and answers HTTP. It is the baseline for the start of a machine.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { takePackage } from '../rootfs/debian/archive.ts'
import { takeStarters } from '../rootfs/image/kernel.ts'
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes } from '../src/wire/cpio.ts'
import { moduleOrder, parseModulesDep } from '../src/wire/modules-dep.ts'

/** What it writes to the kernel's log when it answers. */
export const busyboxAnswers = /busybox: answers/

/** What it writes first. */
export const busyboxRuns = /busybox: runs/

const init = (modules: readonly string[]) => `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
echo "busybox: runs" > /dev/kmsg
${modules.map((name) => `/bin/busybox insmod /modules/${name}`).join('\n')}
/bin/busybox ip link set lo up
for link in /sys/class/net/e*; do
	link=\${link##*/}
	/bin/busybox ip link set "$link" up
	/bin/busybox udhcpc -q -n -t 20 -T 1 -i "$link" -s /lease
done
/bin/busybox httpd -p 50000 -h /
until /bin/busybox wget -q -O /dev/null http://127.0.0.1:50000/init; do :; done
echo "busybox: answers" > /dev/kmsg
while :; do /bin/busybox sleep 60; done
`

const lease = `#!/bin/busybox sh
[ "$1" = bound ] && /bin/busybox ip address add "$ip/$mask" dev "$interface" && echo "busybox: has $ip" > /dev/kmsg
exit 0
`

/** Writes the archive. */
export async function writeBusyboxInitramfs(path: string): Promise<void> {
  const { kernel } = await takeStarters()
  const tree = join(kernel.modules, kernel.release)
  const order = moduleOrder(parseModulesDep(readFileSync(join(tree, 'modules.dep'), 'utf8')), ['virtio-pci', 'virtio-net'])
  const { folder } = await takePackage('busybox-static', undefined, () => {})
  const base = (file: string) => file.slice(file.lastIndexOf('/') + 1)
  const entries: [name: string, mode: number, content: Uint8Array][] = [
    ['bin', cpioTypes.dir | 0o755, new Uint8Array()],
    ['modules', cpioTypes.dir | 0o755, new Uint8Array()],
    ['bin/busybox', cpioTypes.file | 0o755, readFileSync(join(folder, 'bin/busybox'))],
    ['init', cpioTypes.file | 0o755, Buffer.from(init(order.map(base)))],
    ['lease', cpioTypes.file | 0o755, Buffer.from(lease)],
    ...order.map((file): [string, number, Uint8Array] => [`modules/${base(file)}`, cpioTypes.file | 0o644, readFileSync(join(tree, file))]),
  ]
  const parts = entries.flatMap(([name, mode, content], at) => [
    cpioHeader({ name, mode, size: content.length }, at + 1),
    content,
    cpioPadding(content.length),
  ])
  writeFileSync(path, Buffer.concat([...parts, cpioTrailer()]))
}
