/** Values of specs, in their YAML form. */
import * as v from 'valibot'

/** A whole number. */
export const integer = v.pipe(v.number(), v.integer())

/** An IPv4 or IPv6 address; empty when there is none. */
export const ip = v.string()

/** An address with prefix length; empty when there is none. */
export const cidr = v.string()

/** Address and port: `10.0.0.1:6443`, `[fd00::1]:6443`. */
export const hostPort = v.string()

/** A hardware address, lower-case hexadecimal with colons. */
export const mac = v.string()

/** A duration as Go prints it: `1m30s`. */
export const duration = v.string()

/** A date, RFC 3339. */
export const timestamp = v.string()

/** Raw bytes. */
export const bytes = v.instance(Uint8Array)

/** Layers of network configuration, weakest first. */
export const layer = v.picklist(['default', 'cmdline', 'platform', 'operator', 'configuration'])

/** A certificate (chain) and its key, each base64 of PEM. */
export const certificateAndKey = v.object({ crt: v.optional(v.string(), ''), key: v.optional(v.string(), '') })

/** A certificate (chain), base64 of PEM. */
export const certificate = v.object({ crt: v.optional(v.string(), '') })

/** A private key, base64 of PEM. */
export const privateKey = v.object({ key: v.optional(v.string(), '') })
