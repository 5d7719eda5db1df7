/**
 * A machine on a platform, in the network namespace it is started in: `platform-machine.ts <platform>`. It requests an
 * address as a new machine does, reads the platform's metadata, and prints it as one line of JSON; then what it was given as
 * configuration in another. Then it has the network that the metadata declares. It ends when its standard input does.
 */
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import * as mount from '../../../src/linux/fs/mount.ts'
import * as packet from '../../../src/linux/net/packet.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import { SystemInformation } from '../../../src/os/hardware/resources/system-information.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { applyPlatformConfig, loadPlatformConfig, reportToPlatform } from '../../../src/os/network/controllers/platform.ts'
import { clouds } from '../../../src/os/network/platform/clouds.ts'
import { platforms } from '../../../src/os/network/platform/platforms.ts'
import { openPlatform } from '../../../src/os/network/platform/transport.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { PlatformConfig } from '../../../src/os/network/resources/platform-config.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { platformIn, recordings } from '../../os/network/platform/recordings.ts'
import { addressing, leasing } from './controllers.ts'
import { withEthernet } from './namespaces.ts'

const [name = ''] = process.argv.slice(2)
const platform = platformIn(name)
const network = { ...net, openNetwork: () => withEthernet(net.openNetwork()) }
const kernel = { mode: 'metal', files, mount, net: network, packet } as unknown as Kernel
const store = new Store()
const log = createLogger(({ level, message, fields }) => process.env.SHOW && console.error(level, message, JSON.stringify(fields)))
const runtime = new Runtime(store, { log })
store.put(DevicesStatus, 'devices', { ready: true })
store.put(SystemInformation, 'systeminformation', { serialnumber: recordings[name]!.serial ?? '' })
/** No stand-in for the hypervisor is here. */
const guestinfo = async () => ''
const onPlatform = {
  platform: platforms[platform],
  store,
  open: (signal: AbortSignal) => openPlatform({ guestinfo, files, mount, store, commandLine: '' }, signal),
}
runtime.register(...addressing(kernel), ...leasing(kernel), loadPlatformConfig(onPlatform), reportToPlatform(onPlatform))
runtime.start()

const result = Promise.withResolvers<object>()
store.subscribe(PlatformConfig, ({ resource }) => resource && result.resolve(resource.spec), { bootstrap: true })
console.log(JSON.stringify(await result.promise))
store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
const given = await clouds({ guestinfo, files, mount, store }).userData(platform, '', AbortSignal.timeout(240_000))
console.log(JSON.stringify(given ?? ''))
// Not before: the links of some platforms are bonded then, and nothing serves metadata behind their addresses here.
runtime.register(applyPlatformConfig(platform))
for await (const _ of Bun.stdin.stream());
process.exit(0)
