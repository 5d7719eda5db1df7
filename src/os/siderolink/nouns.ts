import { SiderolinkConfig } from './resources/siderolink-config.ts'
import { SiderolinkStatus } from './resources/siderolink-status.ts'
import { SiderolinkTunnel } from './resources/siderolink-tunnel.ts'

/** The kinds of resources of this area. */
export const resources = [SiderolinkConfig, SiderolinkStatus, SiderolinkTunnel]
