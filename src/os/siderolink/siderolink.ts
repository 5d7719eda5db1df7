import type { Area } from '../area.ts'
import { WireguardPresence } from '../kubespan/public.ts'
import { configSiderolink } from './controllers/config.ts'
import { joinSiderolink } from './controllers/join.ts'
import { observeSiderolink } from './controllers/status.ts'
import { runTunnel } from './controllers/tunnel.ts'
import { GrpcTunnel } from './grpc-tunnel.ts'
import { resources } from './resource-types.ts'

/** The link to a management server. */
export const siderolink: Area = {
  name: 'siderolink',
  resources,
  parts: ({ kernel, outbound, version }) => {
    const commandLine = kernel.mode === 'container' ? '' : kernel.files.readText('/proc/cmdline')
    const tunnel = new GrpcTunnel()
    const presence = new WireguardPresence(kernel)
    return {
      controllers: [
        configSiderolink(commandLine),
        joinSiderolink({ kernel, presence, tunnel, outbound, version }),
        runTunnel(tunnel, outbound),
        observeSiderolink(kernel),
      ],
    }
  },
}
