//! Counters of export streams.

use core::ops::AddAssign;

macro_rules! counters {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident { $($(#[doc = $text:literal])* $field:ident,)* }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[doc = $text])* pub $field: u64,)*
        }

        impl $name {
            /// Returns all counters with their names, in the order of the declaration.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counters! {
    /// Counters of one export stream, or the sums of several.
    ///
    /// `bytes` is the sum of the counters that end in `_bytes`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Export packets of NetFlow, messages of IPFIX, datagrams of sFlow.
        datagrams,
        /// Datagrams that were not decoded to their end.
        malformed,
        /// Bytes of the datagrams, without UDP and IP.
        bytes,
        /// Bytes of the headers of messages, sets and samples.
        header_bytes,
        /// Bytes of records of flows, with padding; flow samples for sFlow.
        record_bytes,
        /// Bytes of template sets and options template sets.
        template_bytes,
        /// Bytes of records of options data, with padding.
        options_bytes,
        /// Bytes of data sets whose template was unknown when they arrived.
        unknown_template_bytes,
        /// Bytes of reserved sets, of samples without a flow, behind the message, and behind a fault.
        other_bytes,
        /// Datagrams with at least one record of a flow.
        record_datagrams,
        /// Data records of flows; flow samples for sFlow. A biflow is one record.
        records,
        /// Flow records that were delivered: one for each direction of a biflow.
        flows,
        /// Data records of options.
        options_records,
        /// Records of templates and options templates, withdrawals excluded.
        templates,
        /// Templates that repeat the known definition.
        templates_refreshed,
        /// Templates that replace another definition of their identifier.
        templates_changed,
        /// Templates that were not kept because the table was full.
        templates_refused,
        /// Templates that expired without a refresh (RFC 7011 section 8.4).
        templates_expired,
        /// Templates that were discarded because the exporter restarted (RFC 3954 section 7).
        templates_discarded,
        /// Records of IPFIX that withdraw templates (RFC 7011 section 8.1).
        withdrawals,
        /// Withdrawals of templates that are not known.
        withdrawals_unknown,
        /// Data sets whose template was unknown when they arrived.
        unknown_template_sets,
        /// Such sets that were decoded when their template arrived. Their records are in `records`.
        recovered_sets,
        /// Recovered sets that were not decoded to their end.
        recovered_malformed,
        /// Such sets that were not kept because too many bytes wait for templates.
        discarded_sets,
        /// Sets with a reserved identifier.
        reserved_sets,
        /// Packets of NetFlow v9 whose header counts other than their records. Many exporters count
        /// sets instead.
        count_mismatches,
        /// Counter samples of sFlow.
        counter_samples,
        /// Samples of sFlow without a flow: other formats, and headers that are not IP.
        other_samples,
        /// Packets that an agent of sFlow could not sample.
        sample_drops,
        /// Fields of options data about samplers that were not kept because the table was full.
        samplers_refused,
    }
}

impl Counters {
    /// Returns the mean number of flow records in a datagram that has some (RFC 6645 section 5.6).
    pub fn records_per_datagram(&self) -> Option<f64> {
        (self.record_datagrams > 0).then(|| self.records as f64 / self.record_datagrams as f64)
    }

    /// Returns the records of templates, options templates and options data per datagram (RFC 6645
    /// section 5.6).
    pub fn control_records_per_datagram(&self) -> Option<f64> {
        let control = self.templates + self.options_records;
        (self.datagrams > 0).then(|| control as f64 / self.datagrams as f64)
    }
}
