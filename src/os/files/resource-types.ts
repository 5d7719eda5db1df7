import { EtcFileSpec, EtcFileStatus } from './resources/etc-file.ts'

/** The resource types of this area. */
export const resources = [EtcFileSpec, EtcFileStatus]
