/** How many channels there may be. */

/** NCCL_MIN_NCHANNELS and so on count channels after doubling; a search finds half as many. */
export const MOST_CHANNELS = 64;

/** How many channels there are in the end. */
export interface ChannelLimits {
  readonly least: number;
  readonly most: number;
}

export const ANY_CHANNELS: ChannelLimits = { least: 1, most: MOST_CHANNELS };
