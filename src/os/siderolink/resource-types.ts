import { SiderolinkConfig, SiderolinkStatus, SiderolinkTunnel } from './resources/siderolink.ts'

/** The kinds of resources of this area. */
export const resources = [SiderolinkConfig, SiderolinkStatus, SiderolinkTunnel]
